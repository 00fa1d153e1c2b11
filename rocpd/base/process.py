"""The current process: whether it is rocpd's own or a host program, and the objects that a fork leaves to its parent.

A forked child has copies of connections, threads and child processes that work only in its parent: ending them in the
child would disturb the parent. Objects that have such copies register by `renew_when_forked` and renew them in the
child.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import threading
from typing import Protocol
from weakref import WeakSet

_pid = os.getpid()
_is_own = False
_ROWS = 100_000  # new objects until the collector looks for cycles
_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of mallopt
_DONTNEED = 4  # of madvise
KEPT = 1 << 29
"""Freed memory is kept in pieces of up to this size [bytes]."""


class Renewed(Protocol):
    """An object that also works in a forked child."""

    def renew(self) -> None:
        """Return to a new state, in the child: `abandon` the parent's objects, without ending them."""


_RENEWED: WeakSet[Renewed] = WeakSet()


def claim() -> None:
    """Mark this process as rocpd's own, a command line or a worker; other processes are programs that use the library.

    Python's collector of cycles then runs less often, as scanning live rows takes a twentieth of the time of a summary,
    and not at the end: looking three times through all objects, which end anyway, takes a sixth of a short command.
    """
    global _is_own
    _is_own = True
    gc.set_threshold(_ROWS)
    atexit.register(gc.freeze)


def is_own() -> bool:
    """Whether this process is rocpd's own."""
    return _is_own


def keep_freed(most: int = KEPT) -> None:
    """Keep freed memory for reuse if this process is rocpd's own; glibc would give it back to the system.

    Getting new pages takes as long as the work on large columns in them. But the kept memory lies in pieces between
    memory in use.

    Args:
        most: larger pieces are given back nevertheless [bytes].
    """
    import ctypes

    if _is_own and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_TRIM, most // 2)
        library.mallopt(_MMAP, most)


def give_back() -> None:
    """Give freed memory between memory in use back to the system, if this process is rocpd's own."""
    import ctypes

    if _is_own and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def let_go_of(library: str) -> None:
    """Give the memory of a library that is not needed soon back to the system, on Linux: its file has the content.

    Args:
        library: the name of its file.
    """
    import ctypes
    import re
    from pathlib import Path

    held = Path("/proc/self/smaps")
    text = held.read_text() if held.exists() else ""
    unchanged = rf"^(\w+)-(\w+) r-\Sp .*/{re.escape(library)}\n(?:\w+:.*\n)*?Anonymous: +0 kB$"
    for first, end in re.findall(unchanged, text, re.MULTILINE):
        start = int(first, 16)
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(int(end, 16) - start), _DONTNEED)


def number() -> int:
    """Return the number of this process; objects made under another number belong to a parent."""
    return _pid


def renew_when_forked(thing: Renewed) -> None:
    """Have `thing` renewed in forked children, as long as it exists."""
    _RENEWED.add(thing)


class Turn:
    """A reentrant lock; in a forked child no thread holds it."""

    def __init__(self) -> None:
        self.renew()
        renew_when_forked(self)

    def renew(self) -> None:
        """Make the lock free."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(RuntimeError):  # no thread holds it: the block has forked
            self._lock.release()


def abandon(*things: object) -> None:
    """Keep objects of the parent from ever being finalised in this child, even when Python ends."""
    import ctypes

    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _in_child() -> None:
    global _pid
    _pid = os.getpid()
    for thing in list(_RENEWED):
        thing.renew()


os.register_at_fork(after_in_child=_in_child)
