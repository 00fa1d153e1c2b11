"""Finds out who can read an input, by its content: names of files decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocpd.importers import Importer, known_importers
from rocpd.importers.head import files_in, head_of


def importer_of(path: Path) -> Importer | None:
    """Return the importer that knows an input; None: no importer does.

    Raises:
        OSError: it cannot be read.
    """
    head = head_of(path)
    return next((importer for importer in known_importers().values() if importer.knows(head)), None)


def inputs_in(folder: Path) -> Sequence[Path]:
    """Return what in a folder importers know: the folder itself, or else files in it and in its folders.

    Raises:
        OSError: it cannot be listed.
    """
    if importer_of(folder):
        return (folder,)
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir() and importer_of(path)]
    files = [file for file in files_in(folder) if file.parent not in folders and importer_of(file)]
    return (*folders, *files)
