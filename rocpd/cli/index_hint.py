"""Owns the mention of `rocpd index` after a command that took long."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from rocpd.cli.diagnostics import note

LONG_S = 3.0
"""Time after which an index is worth mentioning."""

Item = TypeVar("Item")


@contextlib.contextmanager
def index_hint(lacks_index: Callable[[], bool]) -> Iterator[None]:
    """Mention `rocpd index` if a block took long.

    Args:
        lacks_index: whether the block would have taken little, had there been an index; asked only if it took long.
    """
    start = time.monotonic()
    yield
    _mention(time.monotonic() - start, lacks_index)


def timed(items: Iterator[Item], lacks_index: Callable[[], bool]) -> Iterator[Item]:
    """Yield items, then mention `rocpd index` if making them took long; what is done with them, paging say, is not."""
    seconds, start = 0.0, time.monotonic()
    for item in items:
        seconds += time.monotonic() - start
        yield item
        start = time.monotonic()
    _mention(seconds + time.monotonic() - start, lacks_index)


def _mention(seconds: float, lacks_index: Callable[[], bool]) -> None:
    if seconds > LONG_S and lacks_index():
        note(f"this took {seconds:.0f} s; after `rocpd index` of these files it may take a tenth")
