"""What turns files of other profilers into rocpd files, as opening knows it; `rocpd.importers` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rocpd.base.errors import InputError


class Foreign(Protocol):
    """Turns files of other profilers into rocpd files."""

    def inside(self, folder: Path) -> Sequence[Path]:
        """Return what in a folder can be imported: the folder itself, or files in it.

        Raises:
            OSError: the folder cannot be listed.
        """
        ...

    def imported(
        self, paths: Sequence[Path], jobs: int | None, on_note: Callable[[str], None]
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        """Import what is known.

        Args:
            paths: files and folders that are no rocpd databases.
            jobs: processes; None: one per core.
            on_note: called with each line that the user should know.

        Returns:
            path -> its rocpd files, or what is wrong with it; paths that no importer knows are left out.
        """
        ...
