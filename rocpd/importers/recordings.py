"""Knows recordings by their content, so that no output replaces one. Only looks.

Some recordings are folders of CSV files: each of these files is a recording by its name and its folder.
"""

from __future__ import annotations

from pathlib import Path

from rocpd.base.identity import STATE_MAGIC
from rocpd.federate.open.source import INDEX
from rocpd.importers import importer_of
from rocpd.importers.signs import head_of, is_part
from rocpd.schema.write import MARK

_IN_INDEX = b"rocprofiler-sdk"
_UP = 3  # levels of folders above a file of a recording


def kind_of(path: Path) -> str | None:
    """Return the kind of recording that a file is, or is a part of; None if it is no recording, or cannot be read."""
    try:
        head = head_of(path)
        if any(name.startswith("rocpd_metadata") for name in head.tables):
            return "a rocpd database"
        if head.start.startswith(STATE_MAGIC):
            return "the state of a recorder"
        if path.name == INDEX and _IN_INDEX in head.start:
            return "the index of a package"
        importer = importer_of(path)
        is_table = b"," in head.start.partition(b"\n")[0] and is_part(path.name)
        folders = (folder for folder in path.parents[:_UP] if is_table)
        return importer.doc if importer else next(filter(None, map(_read_as_a_whole, folders)), None)
    except OSError:
        return None


def is_marked(path: Path) -> bool:
    """Whether a file is a database that rocpd, and not a recorder, made of recordings."""
    try:
        return MARK in head_of(path).tables
    except OSError:
        return False


def joins(path: Path, folder: Path) -> str | None:
    """Return the kind of a folder that is read as a whole, together with a new file of this name in it; else None.

    Databases in a folder take precedence over its other files.
    """
    has_databases = any(folder.glob("*.db")) or any(folder.glob("*/*.db"))
    return None if has_databases or not is_part(path.name) else _read_as_a_whole(folder)


def _read_as_a_whole(folder: Path) -> str | None:
    importer = importer_of(folder)
    return importer.doc if importer else None
