"""Which files a program may name: the inputs that were named at the start, and what lies below them; nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rocpd.base import UsageError, frozen
from rocpd.base.texts import visible


@frozen
class Admitted:
    """The inputs that were named at the start.

    Args:
        inputs: files, folders and packages.
    """

    inputs: tuple[str, ...]

    def named(self, word: str | None) -> tuple[str, ...]:
        """Return the inputs that a word means: all of them for None; links count where they lead.

        >>> Admitted(("a.db", "b.db")).named(None)
        ('a.db', 'b.db')

        Raises:
            UsageError: it is neither an input nor below one, or there is none.
        """
        if word is None or word in self.inputs:
            return self.inputs if word is None else (word,)
        path, roots = _real(word), [_real(each) for each in self.inputs]
        if path is None or not any(root and path.is_relative_to(root) for root in roots):
            raise UsageError(f"{visible(word)}: not among the inputs", f"they are {_listed(self.inputs)}")
        return (os.fspath(path),)


def _real(word: str) -> Path | None:
    """Return where a path leads; None: nowhere."""
    try:
        return Path(word).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None


def _listed(inputs: Sequence[str]) -> str:
    return ", ".join(visible(each) for each in inputs[:10])
