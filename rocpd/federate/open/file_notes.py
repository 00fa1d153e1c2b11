"""Owns what is noted of files: one line for a file, one line for all of which the same is to be said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_NAMED = 3  # files in a line


class FileNote(NamedTuple):
    """A file, and what the user should know of it; `left_out`: that it is not read, for that reason."""

    path: Path
    what: str
    left_out: bool = False

    @property
    def text(self) -> str:
        """The note as a line of its own."""
        return f"{_front(self)}{self.path}: {self.what}"

    @property
    def of_any(self) -> str:
        """What is noted, without the name of the file: files beside it are called like it."""
        return self.what.replace(self.path.name, "…")


def lines_of(notes: Iterable[FileNote], files: int) -> Iterator[str]:
    """Yield one line per note, or one for all files of which the same is to be said.

    Args:
        notes: in order.
        files: how many files there are.

    >>> list(lines_of([FileNote(Path(f"rank{n}.db"), "empty", True) for n in range(5)], 8))
    ['left out: 5 of 8 files: empty: rank0.db, rank1.db, rank2.db …']
    """
    same: dict[tuple[bool, str], list[FileNote]] = {}
    for note in notes:
        same.setdefault((note.left_out, note.of_any), []).append(note)
    for first, *others in same.values():
        if not others:
            yield first.text
            continue
        names = ", ".join(str(note.path) for note in (first, *others)[:_NAMED])
        more = " …" if len(others) >= _NAMED else ""
        yield f"{_front(first)}{len(others) + 1} of {files} files: {first.of_any}: {names}{more}"


def _front(note: FileNote) -> str:
    return "left out: " if note.left_out else ""
