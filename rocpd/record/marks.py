"""Ranges and marks of Python code: `with range("step")`, `@range("step")`, `mark("here")`.

They cost a function call if the process is not recorded, and never raise an error of the recorder.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from rocpd.base import RocpdError
from rocpd.record import library

P = ParamSpec("P")
R = TypeVar("R")


def nothing(*_: object) -> None:
    """Do nothing, in place of a recorder."""


class Calls:
    """The functions behind ranges and marks; they do nothing until a recorder is in the process."""

    push: Callable[[bytes, int], object] = staticmethod(nothing)
    pop: Callable[[], object] = staticmethod(nothing)
    mark: Callable[[bytes, int], object] = staticmethod(nothing)
    correlate: Callable[[int], object] = staticmethod(nothing)


def connect() -> None:
    """Connect ranges and marks to the recorder; load its library if necessary."""
    recorder: Any = library.load()
    Calls.push = recorder.rocpd_range_push
    Calls.pop = recorder.rocpd_range_pop
    Calls.mark = recorder.rocpd_mark
    Calls.correlate = recorder.rocpd_correlate


class range:  # noqa: N801 (used as a function)
    """A named range of the calling thread: a context manager and a decorator. Ranges nest.

    Args:
        name: text of the range, shown as the marker's name.

    >>> with range("load"):
    ...     pass
    >>> @range("step")
    ... def step(n: int) -> int:
    ...     return n + 1
    >>> step(1)
    2
    """

    __slots__ = ("_size", "_text")

    def __init__(self, name: str) -> None:
        self._text = name.encode("utf-8", "surrogateescape")
        self._size = len(self._text)

    def __enter__(self) -> None:
        Calls.push(self._text, self._size)

    def __exit__(self, *_: object) -> None:
        Calls.pop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        text, size = self._text, self._size

        @functools.wraps(function)
        def ranged(*args: P.args, **kwargs: P.kwargs) -> R:
            Calls.push(text, size)
            try:
                return function(*args, **kwargs)
            finally:
                Calls.pop()

        return ranged


def mark(name: str) -> None:
    """Record a point in time in the calling thread.

    >>> mark("epoch 3")
    """
    text = name.encode("utf-8", "surrogateescape")
    Calls.mark(text, len(text))


def correlate(number: int) -> None:
    """Attach a number to all later events of the calling thread, and to the GPU work that it launches.

    Args:
        number: number of a request, a training step …, 0 to 2^63 - 1; 0: none. The views have it as `corr_id`.

    >>> correlate(7)
    """
    Calls.correlate(number)


if library.loaded() is not None:  # under `rocpd record`
    with contextlib.suppress(RocpdError):  # a library of another version: the program runs without ranges
        connect()
