"""Reads the GPU operations of one rank, kernels and copies, in the order in which each agent ran them, and their calls.

`rocpd.schema.rules.launch` has the rule for the call that launched an operation. Memory: one rank at a time, about 80
bytes per operation. Rows with invalid timestamps are left out and counted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Flags, Ints, frozen
from rocpd.facts.columns import EqualColumns, as_text, at_rows, columns, distinct, statement, texts_by_id
from rocpd.facts.columns import number as whole
from rocpd.facts.cxx import bare_name
from rocpd.facts.rank import Base, By, RankReading
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, KINDS, Union, covered, union
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.events import GPUS, VALID_TIMES, valid_times
from rocpd.schema.rules.kernel_categories import Categories, is_communication
from rocpd.schema.rules.kernel_names import UNCUT, KernelNames, names_of_kernels
from rocpd.schema.rules.launch import launches, launching_regions

KERNEL, COPY = 0, 1
GRID, GROUP = (tuple(f"{what}_size_{axis}" for axis in "xyz") for what in ("grid", "workgroup"))
"""Columns of the sizes of dispatches [work-items]."""

_COLUMNS = ("id", "start", "end", "agent", "stream", "name", "stack")
_STRINGS = "SELECT id, string FROM rocpd_string"
_AMONG = " WHERE id IN (SELECT value FROM json_each(?))"


@frozen
class Ops(EqualColumns):
    """Operations of one rank, sorted by (agent, start, end, kind, id); all columns are equally long.

    Args:
        kind: `KERNEL` or `COPY`.
        row: id of the dispatch or copy.
        start, end: as recorded [ns].
        agent, stream: ids, `NULL` where unknown.
        name: number in `OperationNames`.
        stack: stack id, which leads to its call; `NULL` where unknown or not asked for.
    """

    kind: Ints
    row: Ints
    start: Ints
    end: Ints
    agent: Ints
    stream: Ints
    name: Ints
    stack: Ints

    @property
    def duration(self) -> Ints:
        """Length of each operation [ns]."""
        return self.end - self.start

    def lane(self, by: By | None) -> Ints:
        """Return the agent of each operation, or its stream in a division by stream."""
        return self.stream if by is By.STREAM else self.agent

    def lanes(self, by: By | None) -> Iterator[tuple[int, Ops]]:
        """Yield the operations of each agent, or of each stream in a division by stream."""
        lane = self.lane(by)
        for number in distinct(lane).tolist():
            yield number, self.take((lane == number).nonzero()[0])

    def union(self, rows: Ints | slice = slice(None)) -> Union:
        """Return the time that some or all of the operations cover."""
        return union(self.start[rows], self.end[rows])

    def gaps_before(self) -> Ints:
        """Return for each operation of one agent the time from the latest end of all operations before it [ns].

        0 while one of them still runs, `NULL` for the first.
        """
        latest = np.maximum.accumulate(self.end)
        gaps = np.maximum(self.start[1:] - latest[:-1], 0)
        return np.append(NULL, gaps)[: len(self)]

    def within(self, base: Base | None) -> Ops:
        """Return these operations, cut at the edges of a window."""
        if base is None:
            return self
        cut = np.clip(np.array([self.start, self.end]), *base)
        return dataclasses.replace(self, start=cut[0], end=cut[1])


_LANES = f"SELECT DISTINCT agent, stream FROM ({{}}) WHERE {VALID_TIMES}"


def all_lanes(reading: RankReading, ops: Ops) -> Iterator[tuple[int, int, Ints]]:
    """Yield agent or stream, its agent, and rows of its operations; also those that work only outside of the window.

    Args:
        reading: reads the rank.
        ops: the operations that count.
    """
    by = reading.options.by
    agents = {lane: int(on_lane.agent[0]) for lane, on_lane in ops.lanes(by)}
    if reading.window.base:
        for kind in ("kernels", "memory_copies"):
            for row in reading.reader.unwindowed().rows(_LANES.format(statement(kind))):
                agent, stream = map(whole, row)
                agents.setdefault(stream if by is By.STREAM else agent, agent)
    lanes = ops.lane(by)
    for lane in sorted(agents):
        yield lane, agents[lane], (lanes == lane).nonzero()[0]


def rows_within(ops: Ops, by: By | None, lane: int, span: Base) -> Ints:
    """Return the rows of the operations of an agent, or stream, that run between two times [ns]."""
    low, high = span
    return np.flatnonzero((ops.lane(by) == lane) & (ops.start < high) & (np.maximum(ops.end, ops.start + 1) > low))


class OperationNames:
    """Numbers for names of kernels and directions of copies, each number for a pair of shown and full name.

    Attributes:
        texts: shown name of each number; several numbers have the same if the form of names leaves parts out.
        full: full name of each number, which identifies a kernel across ranks.
    """

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self.full: list[str | None] = []
        self._codes: dict[tuple[str | None, str | None], int] = {}

    def adopt(self, others: OperationNames) -> None:
        """Take over the numbers of others, where there are none yet."""
        self.texts, self.full, self._codes = others.texts.copy(), others.full.copy(), others._codes.copy()

    def code(self, shown: str | None, full: str | None) -> int:
        """Return the number of a name; a new name gets the next number."""
        code = self._codes.setdefault((shown, full), len(self.texts))
        if code == len(self.texts):
            self.texts.append(shown)
            self.full.append(full)
        return code

    def first_alike(self) -> Ints:
        """Return for each number the first number with the same full name."""
        first: dict[str | None, int] = {}
        return np.array([first.setdefault(full, code) for code, full in enumerate(self.full)], np.int64)


def kinds_of(ops: Ops, categories: Categories, names: OperationNames) -> Ints:
    """Return the kind of each operation (computes, communicates, copies) as a number in `KINDS`."""
    return np.where(ops.kind == COPY, COPIES, _kinds_of_kernels(categories, tuple(names.full))[ops.name])


@functools.lru_cache(64)  # asked by analysis after analysis, for rank after rank
def _kinds_of_kernels(categories: Categories, names: tuple[str | None, ...]) -> Ints:
    kinds = [COMMUNICATION if is_communication(categories.of(name)) else COMPUTE for name in names]
    return np.array(kinds, np.int64)


def split(ops: Ops, categories: Categories, names: OperationNames) -> dict[str, Ints]:
    """Return the rows of compute kernels, communication kernels and copies among operations."""
    kinds = kinds_of(ops, categories, names)
    return {kind: (kinds == number).nonzero()[0] for number, kind in enumerate(KINDS)}


def kernel_texts(reader: RankReader, names: KernelNames, ids: Ints) -> dict[int, str | None]:
    """Return kernel id -> name; many profilers write no truncated name, so it is derived from the display name."""
    texts = texts_by_id(reader, names_of_kernels(names) + _AMONG, ids)
    if names is KernelNames.TRUNCATED:
        return {number: text and bare_name(text) for number, text in texts.items()}
    return texts


def string_texts(reader: RankReader, ids: Ints) -> dict[int, str | None]:
    """Return string id -> text."""
    return texts_by_id(reader, _STRINGS + _AMONG, ids)


def kernel_forms(reading: RankReading, ids: Ints) -> tuple[dict[int, str | None], dict[int, str | None]]:
    """Return kernel id -> name in the form that was asked for, and kernel id -> full name."""
    full = kernel_texts(reading.reader, KernelNames.FULL, ids)
    form = reading.options.kernel_names
    return (full if form in UNCUT else kernel_texts(reading.reader, form, ids)), full


def read_ops(reading: RankReading, names: OperationNames, stacks: bool = False) -> Ops:
    """Read the operations of a rank; `stacks` also reads their stack ids."""
    stacks = stacks or reading.reader.known is not None  # then they are kept once, with all columns
    read = reading.reader.once(_OPERATIONS.of(stacks), lambda: _in_order(reading.reader, stacks))
    reading.left_out["GPU operations"] += read.invalid
    form = reading.options.kernel_names
    if names.texts:
        return _named(read, names, reading.reader.once(("names", form), lambda: _names(reading, read)))

    def named() -> tuple[Ops, OperationNames]:
        rank_names = OperationNames()
        return _named(read, rank_names, reading.reader.once(("names", form), lambda: _names(reading, read))), rank_names

    ops, known = reading.reader.once(("named", form, stacks), named)
    names.adopt(known)
    return ops


def _named(read: _InOrder, names: OperationNames, known: Iterable[tuple[str | None, str | None]]) -> Ops:
    """Return operations with the numbers of their names in `names`; new names get new numbers."""
    codes = [names.code(*name) for name in known]
    return dataclasses.replace(read.ops, name=np.array(codes, np.int64)[read.ops.name])


class _InOrder(NamedTuple):
    """Sorted operations of a rank, kept as six analyses of the first screen need them and sorting is most of the work.

    Args:
        ops: operations with valid times, in order; names are indices into `kernels`, then `copies`.
        kernels, copies: ids of their names, ascending.
        invalid: number of operations without valid times.
    """

    ops: Ops
    kernels: Ints
    copies: Ints
    invalid: int


_OPERATIONS = Fact("operations", 1, (_InOrder, Ops))


def _names(reading: RankReading, read: _InOrder) -> list[tuple[str | None, str | None]]:
    """Return the name of each kernel and copy in the form that was asked for, and its full name."""
    shown, full = kernel_forms(reading, read.kernels)
    texts = string_texts(reading.reader, read.copies)
    kernels = [(shown.get(number), full.get(number)) for number in read.kernels.tolist()]
    return kernels + [(texts.get(number), texts.get(number)) for number in read.copies.tolist()]


def _in_order(reader: RankReader, stacks: bool) -> _InOrder:
    kernels = _read(reader, "rocpd_kernel_dispatch", "kernels", stacks)
    copies = _read(reader, "rocpd_memory_copy", "memory_copies", stacks)
    ids = distinct(kernels[5]), distinct(copies[5])
    kind = np.repeat(np.array([KERNEL, COPY], np.int64), [len(kernels[0]), len(copies[0])])
    row, start, end, agent, stream, name, stack = (np.concatenate(pair) for pair in zip(kernels, copies, strict=True))
    name = np.where(kind == KERNEL, np.searchsorted(ids[0], name), len(ids[0]) + np.searchsorted(ids[1], name))
    valid = valid_times(start, end)
    order = np.lexsort((row, kind, end, start, agent))
    ops = Ops(kind, row, start, end, agent, stream, name, stack).take(order[valid[order]])
    return _InOrder(ops, *ids, int((~valid).sum()))


def timed_columns(reading: RankReading, base: str, select: str, names: Sequence[str], what: str = "") -> list[Ints]:
    """Read columns, `start` and `end` among them, of the rows of a rank with valid times.

    Args:
        reading: reads the rank; counts the other rows if `what` is given.
        base: table of the rows.
        select: name of the statement.
        names: names of the columns.
        what: name of this kind of rows.
    """
    read = columns(reading.reader, base, statement(select), names)
    valid = valid_times(*(read[names.index(edge)] for edge in ("start", "end"))).nonzero()[0]
    if what:
        reading.left_out[what] += len(read[0]) - len(valid)
    return [column[valid] for column in read]


def has_its_time(reader: RankReader) -> Callable[[int], bool]:
    """Return a function that returns whether an agent exists for all the time of a rank.

    Of any other agent, such as NULL, only the operations on it are known.
    """
    gpus = reader.once(GPUS, lambda: {number for (number,) in reader.rows(GPUS)})
    return lambda agent: not gpus or agent in gpus


def read_stacks(reader: RankReader) -> dict[int, tuple[Ints, Ints, Ints]]:
    """Return kind of operation -> row ids in order, starts and stack ids of all, including those with invalid times."""
    stacks = {}
    for kind, base, name in (
        (KERNEL, "rocpd_kernel_dispatch", "kernels"),
        (COPY, "rocpd_memory_copy", "memory_copies"),
    ):
        row, start, *_, stack = _read(reader, base, name, stacks=True)
        stacks[kind] = row, start, stack
    return stacks


def _read(reader: RankReader, base: str, name: str, stacks: bool) -> list[Ints]:
    also = ("size",) if base == "rocpd_memory_copy" else ()  # analyses need it; for few rows a statement costs most
    read = columns(reader, base, statement(name), (*(_COLUMNS if stacks else _COLUMNS[:-1]), *also))
    return read[: len(_COLUMNS)] if stacks else [*read[: len(_COLUMNS) - 1], np.full(len(read[0]), NULL)]


_CALLS = ("id", "stack", "start", "end")
_THREADS = ("stack", "start", "end", "thread")
NO_THREAD = -2
"""The thread of an unknown call: no region has it."""


@frozen
class Links(EqualColumns):
    """The launching call of each operation of a rank.

    Args:
        linked: rows of the operations whose call is known.
        call: ids of their calls.
        start, end: of their calls [ns].
        first: whether the operation is the first one of its call: a graph launch starts many.
    """

    linked: Ints
    call: Ints
    start: Ints
    end: Ints
    first: Flags


def link(reader: RankReader, ops: Ops) -> Links:
    """Return the launching call of each operation in the whole trace; calls with invalid times are left out."""
    row, stack, start, end = columns(reader.whole(), "rocpd_region", statement("regions"), _CALLS)
    call = launching_regions(stack, start, end, ops.stack)
    linked = (call >= 0).nonzero()[0]
    linked = linked[valid_times(start[call[linked]], end[call[linked]])]
    call = call[linked]
    by_time = np.lexsort((ops.start[linked], call))
    first = np.zeros(len(linked), bool)
    first[by_time[np.diff(call[by_time], prepend=-1).nonzero()[0]]] = True
    return Links(linked, row[call], start[call], end[call], first)


def launch_calls(reader: RankReader, stacks: Ints) -> tuple[Ints, Ints]:
    """Return thread and start [ns] of the launching call of each operation, in the whole trace.

    Args:
        reader: reads the rank.
        stacks: stack id of each operation.

    Returns:
        threads, `NO_THREAD` where no call is known, and starts, 0 there.
    """
    stack, start, end, thread = columns(reader.whole(), "rocpd_region", statement("regions"), _THREADS)
    call = launching_regions(stack, start, end, stacks)
    return at_rows(thread, call, NO_THREAD), at_rows(start, call, 0)


def functions_of(reader: RankReader, calls: Ints) -> tuple[Ints, dict[int, str | None]]:
    """Return the function of each call in the whole trace, as the id of its name, and id -> name.

    Args:
        reader: reads the rank.
        calls: ids of calls of the rank.
    """
    row, name = columns(reader.whole(), "rocpd_region", statement("regions"), ("id", "name"))
    order = np.argsort(row, kind="stable")
    functions = name[order][np.searchsorted(row[order], calls)]
    return functions, string_texts(reader.whole(), functions)


def idle_until(reading: RankReading) -> tuple[Callable[[Ints], Ints], bool]:
    """Return a function times -> idle time before each of them [ns], and whether the rank has operations.

    Idle is time in which no operation runs, from the first operation of the rank to its last, in the whole trace.
    """
    ops = read_ops(reading.whole(), OperationNames())
    busy, (start, end) = ops.union(), (int(ops.start.min()), int(ops.end.max())) if len(ops) else (0, 0)
    return lambda times: np.clip(times, start, end) - start - covered(busy, times), len(ops) > 0


def numbered_dispatches(reading: RankReading) -> Iterator[tuple[str | None, Base | None]]:
    """Yield the kernel of each dispatch of the whole trace, in the order of dispatch, with its times [ns].

    Times are as the window cuts them; None for a dispatch that the selection leaves out, `NULL` where not recorded.
    """
    select = statement("numbered_dispatches")
    counted = {row: (whole(start), whole(end)) for row, _, start, end in reading.reader.rows(select)}
    for row, kernel, *_ in reading.whole().reader.rows(select):
        yield as_text(kernel), counted.get(row)


def launching_rows(reader: RankReader) -> Ints:
    """Return the row ids of the regions that launch operations, in the whole trace."""
    row, *call = columns(reader.whole(), "rocpd_region", statement("regions"), _CALLS)
    return row[launches(*call)]


def started(reading: RankReading, ops: Ops) -> Ints:
    """Return the start of each operation [ns] as recorded, even if the edge of a window cut it off."""
    if not reading.reader.cuts:
        return ops.start
    uncut = read_ops(reading.whole(), OperationNames())
    codes = uncut.row * 2 + uncut.kind
    order = np.argsort(codes)
    return uncut.start[order][np.searchsorted(codes[order], ops.row * 2 + ops.kind)]
