"""The state file: calls and operations that a running process has begun and not ended, beside its database.

It is called `NAME.db.live`. Rows are written when an event ends, so the database cannot show which rank waits for
which. The recorder keeps that in this file of fixed size, which it maps into memory, so that it survives SIGKILL. The
file is removed when the process ends by itself; after a signal it stays, if the process was in groups. This module
describes its layout: `sdk_tool/src/live_state.h` has the same offsets, which a test compares. Knows no database.

A file is a header, then slots of threads, then slots of groups, little-endian. A slot has one writer at a time, which
makes `turn` odd, changes the slot, and makes `turn` even again: a reader that finds `turn` odd, or different at its
second look, looks again. So no reader takes a half-written slot. Times are nanoseconds of the clock of the rows.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import InputError, frozen
from rocpd.base.identity import STATE, STATE_MAGIC

VERSION = 1
THREADS, GROUPS = 64, 192
"""Slots in a file."""

ENDED, FAILED, CROWDED = 1, 2, 4
"""Flags: the recorder has ended; it could no longer write rows; there are more threads or groups than slots."""

CLOSED, ABORTED = 1, 2
"""States of a group that a process has left."""

SIZE_UNKNOWN = 2**32 - 1
"""Number of members of a group that is a part of another group."""

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("turn", "<u4"),
        ("flags", "<u4"),
        ("threads", "<u4"),  # slots
        ("groups", "<u4"),  # slots
        ("rank", "<i4"),  # in the job, -1: unknown
        ("pid", "<u8"),
        ("clock", "<u8"),  # of the rows, at the last sign of life [ns]
        ("wall", "<u8"),  # time of day, at the same moment [ns]
        ("boot", "S40"),  # id of the machine's boot
        ("guid", "S40"),  # of the database
        ("host", "S64"),
        ("speed", "<f8"),  # seconds of the rows' clock in a second: 1 except for simulated jobs
        ("reserved", "V48"),
    ]
)
"""The header: the writing process, and a pair of readings of both clocks, renewed at least once a second."""

THREAD = np.dtype(
    [
        ("turn", "<u4"),
        ("tid", "<u4"),  # 0: a free slot
        ("since", "<u8"),  # start of the call, 0: the thread is in no call
        ("group", "<u8"),  # group of the call, 0: none
        ("call", "S48"),
        ("range_since", "<u8"),  # start of the range, 0: the thread is in no range
        ("range", "S48"),
    ]
)
"""A thread, its outermost call of a runtime, and, updated twice a second, its innermost range of the program."""

GROUP = np.dtype(
    [
        ("turn", "<u4"),
        ("size", "<u4"),  # members, 0: a free slot, SIZE_UNKNOWN
        ("member", "<i4"),  # number of this process in it, -1: unknown
        ("closed", "<u4"),  # CLOSED: the process has left it; ABORTED: it left without waiting for begun operations
        ("id", "<u8"),  # the same in all members
        ("entered", "<u8"),  # operations that the process has called
        ("left", "<u8"),  # operations that are over
        ("entered_at", "<u8"),  # time of the last call
        ("left_at", "<u8"),  # time when the last operation was over
        ("bytes", "<u8"),  # of the last called operation
        ("operation", "S48"),  # the last called operation
        ("left_operation", "S48"),
        ("name", "S32"),  # for people
    ]
)
"""A communicator, or one direction between two of its members, and the progress of the process in it."""

SIZE = HEADER.itemsize + THREADS * THREAD.itemsize + GROUPS * GROUP.itemsize
"""Size of a file [bytes]."""


def state_file(database: Path) -> Path:
    """Return the path of the state file of a database."""
    return database.with_name(database.name + STATE)


@frozen
class ThreadState:
    """The state of a thread.

    Args:
        tid: the thread.
        call: the call of a runtime.
        since: start of the call [ns], 0: the thread is in no call.
        group: the group of the call, 0: none.
        range: the innermost range of the program.
        range_since: start of the range [ns], 0: the thread is in no range.
    """

    tid: int
    call: str
    since: int
    group: int
    range: str = ""
    range_since: int = 0


@frozen
class GroupState:
    """The progress of a process in a group.

    Args:
        id: id of the group, the same in all members.
        name: name for people.
        size: number of members, or `SIZE_UNKNOWN`.
        member: number of the process in the group, -1 where unknown.
        entered: number of operations that it has called.
        left: number of operations that are over.
        entered_at: time of its last call [ns].
        left_at: time when the last operation was over [ns].
        operation: the operation that it called last.
        left_operation: the operation that was over last.
        bytes: size of the operation that it called last.
        closed: whether the process has left the group: 0, `CLOSED` or `ABORTED`.
    """

    id: int
    name: str
    size: int
    member: int
    entered: int
    left: int
    entered_at: int
    left_at: int
    operation: str
    left_operation: str
    bytes: int
    closed: int = 0


@frozen
class LiveState:
    """The content of a state file.

    Args:
        guid: GUID of the database.
        host: host on which the process runs.
        boot: id of that machine's boot.
        pid: pid of the process.
        rank: its rank in the job, -1: unknown.
        flags: sum of `ENDED`, `FAILED`, `CROWDED`.
        clock: clock of the rows at the last sign of life [ns].
        wall: time of day at that moment [ns].
        speed: seconds of the rows' clock in a second.
        threads: threads that are in a call or range.
        groups: groups that the process is in.
    """

    guid: str
    host: str
    boot: str
    pid: int
    rank: int
    flags: int
    clock: int
    wall: int
    speed: float
    threads: tuple[ThreadState, ...]
    groups: tuple[GroupState, ...]


def read_state(path: Path) -> LiveState:
    """Read a state file, while it is written or after its process was killed.

    Raises:
        OSError: it cannot be read.
        InputError: it is no state file, has another version, is cut off, or its header was changing at each look.
    """
    if path.stat().st_size != SIZE:
        raise InputError(f"{path}: {path.stat().st_size} bytes, no state file of {SIZE}", "leave it out, or remove it")
    with path.open("rb") as file, mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ) as memory:
        header, threads, groups = (_stable(memory, path, *part) for part in _PARTS)
    head = header[0]
    if head["magic"] != STATE_MAGIC or head["version"] != VERSION:
        raise InputError(f"{path}: no state file of version {VERSION}", "leave it out, or read it with its own rocpd")
    values: dict[str, Any] = {name: int(head[name]) for name in ("pid", "rank", "flags", "clock", "wall")}
    values |= {name: _text(head[name]) for name in ("guid", "host", "boot")}
    return LiveState(
        **values,
        speed=float(head["speed"]) or 1.0,
        threads=tuple(
            _row(ThreadState, slot) for slot in threads if slot["tid"] and (slot["since"] or slot["range_since"])
        ),
        groups=tuple(_row(GroupState, slot) for slot in groups if slot["size"]),
    )


def flags_of(path: Path) -> int:
    """Return only the flags of a state file, a hundred times faster than `read_state`; 0 if it is no state file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        content = file.read(HEADER.itemsize)
    is_known = len(content) == HEADER.itemsize and content.startswith(STATE_MAGIC)
    return int(np.frombuffer(content, HEADER)["flags"][0]) if is_known else 0


_PARTS = (
    (HEADER, 1, 0),
    (THREAD, THREADS, HEADER.itemsize),
    (GROUP, GROUPS, HEADER.itemsize + THREADS * THREAD.itemsize),
)
_LOOKS = 1000


def _stable(memory: mmap.mmap, path: Path, kind: np.dtype[Any], slots: int, offset: int) -> Any:
    """Return a copy of slots, taken while none of them was changing."""
    size = kind.itemsize * slots
    for _ in range(_LOOKS):
        first = np.frombuffer(memory[offset : offset + size], kind)
        if (first["turn"] % 2 == 0).all():
            again = np.frombuffer(memory[offset : offset + size], kind)
            if (first["turn"] == again["turn"]).all():
                return first
    # A process that was killed while it changed a slot leaves it odd: the other slots are still valid.
    whole = np.frombuffer(memory[offset : offset + size], kind).copy()
    if slots == 1:
        raise InputError(f"{path}: its header is half written", "its process was killed just then: leave it out")
    whole[whole["turn"] % 2 == 1] = 0
    return whole


def _row(kind: Any, slot: Any) -> Any:
    values = {name: slot[name] for name in kind.__dataclass_fields__}
    return kind(**{n: _text(v) if isinstance(v, bytes) else int(v) for n, v in values.items()})


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


class StateWriter:
    """Writes a state file; it keeps no name open once it is closed.

    Args:
        path: path of the file; an existing file is replaced.
        who: fields of the header.
    """

    def __init__(self, path: Path, **who: Any) -> None:
        self.path = path
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self._header, self._threads, self._groups = (
            np.frombuffer(self._memory, kind, slots, offset) for kind, slots, offset in _PARTS
        )
        self.beat(threads=THREADS, groups=GROUPS, version=VERSION, **who)
        self._header["magic"] = STATE_MAGIC  # last: readers refuse a file without it

    def beat(self, **fields: Any) -> None:
        """Change the header."""
        self._change(self._header, 0, fields)

    def thread(self, slot: int, **fields: Any) -> None:
        """Change a slot of a thread."""
        self._change(self._threads, slot, fields)

    def group(self, slot: int, **fields: Any) -> None:
        """Change a slot of a group."""
        self._change(self._groups, slot, fields)

    def _change(self, slots: Any, slot: int, fields: dict[str, Any]) -> None:
        slots["turn"][slot] += 1
        for name, value in fields.items():
            slots[name][slot] = value.encode() if isinstance(value, str) else value
        slots["turn"][slot] += 1

    def close(self, *, remove: bool) -> None:
        """Let go of the file; remove it when its process has ended well."""
        del self._header, self._threads, self._groups  # views of the memory, which can be closed only without them
        self._memory.close()
        if remove:
            self.path.unlink(missing_ok=True)
