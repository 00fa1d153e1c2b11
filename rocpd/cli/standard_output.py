"""Owns stdout as commands write to it: a reader that has seen enough ends the command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

from rocpd.errors import Exit


class ReaderGoneError(Exception):
    """The reader of stdout has seen enough.

    Attributes:
        code: what the command ends with.
    """

    code: int = Exit.GOOD


@contextlib.contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield stdout.

    Raises:
        ReaderGoneError: its reader has seen enough.
    """
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error
