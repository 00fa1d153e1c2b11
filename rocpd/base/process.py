"""The process that the code runs in: whether it is rocpd's own or a host program, and what a fork leaves to its parent.

A forked child has copies of connections, threads and child processes that work in its parent alone: to end them there
would disturb the parent. What has such things is known by `renew_when_forked` and makes them anew in the child.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from typing import Protocol
from weakref import WeakSet

_pid = os.getpid()
_is_own = False
_ROWS = 100_000  # objects that come before the collector looks for cycles
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of mallopt
KEPT = 1 << 29
"""Memory that is freed is kept in pieces of up to so many bytes."""


class Renewed(Protocol):
    """An object that works in a forked child as well."""

    def renew(self) -> None:
        """Be as new, in the child: let go of what is the parent's by `abandon`, without ending it."""


_RENEWED: WeakSet[Renewed] = WeakSet()


def claim() -> None:
    """Say that this process is rocpd's own, a command line or a worker; others are programs that use the library.

    Python's collector of cycles then goes by many rows: looking through those that live takes a twentieth of a summary.
    """
    global _is_own
    _is_own = True
    gc.set_threshold(_ROWS)


def is_own() -> bool:
    """Whether this process is rocpd's own."""
    return _is_own


def keep_freed(most: int = KEPT) -> None:
    """Let this process, if it is rocpd's own, use memory again that it freed, which glibc gives back to the system.

    Pages that come anew take as long as what is done to large columns in them. But what is kept lies in pieces between
    what is in use.

    Args:
        most: larger pieces are given back all the same [bytes].
    """
    import ctypes

    if _is_own and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_TRIM, most // 2)
        library.mallopt(_MMAP, most)


def give_back() -> None:
    """Let the system have memory that is free between what is in use, where this process is rocpd's own."""
    import ctypes

    if _is_own and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def number() -> int:
    """Return the number of this process: what was made under another one is a parent's."""
    return _pid


def renew_when_forked(thing: Renewed) -> None:
    """Have `thing` renewed in forked children, as long as it lives."""
    _RENEWED.add(thing)


class Turn:
    """A lock that one thread holds at a time, as often as it likes; in a forked child nobody does."""

    def __init__(self) -> None:
        self.renew()
        renew_when_forked(self)

    def renew(self) -> None:
        """Let nobody hold it."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(RuntimeError):  # nobody holds it: the block has forked
            self._lock.release()


def abandon(*things: object) -> None:
    """Let objects that belong to the parent never end in this child, not even when Python ends."""
    import ctypes

    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _in_child() -> None:
    global _pid
    _pid = os.getpid()
    for thing in list(_RENEWED):
        thing.renew()


os.register_at_fork(after_in_child=_in_child)
