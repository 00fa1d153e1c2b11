"""Allocations and frees of one rank: the allocation that each row ends, its caller, and the memory held from then on.

Never guesses the size of a free whose allocation is not in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.base import NULL, Flags, Ints, frozen
from rocpd.facts.columns import Names, Select, TextCodes, as_text, at_rows, grouped, numbered, read_all, statement
from rocpd.facts.operations import NO_THREAD
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import RankRegions, calls_of, marked_threads
from rocpd.facts.spread import total
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.events import ALLOCATING, LAST, SCRATCH, valid_times

_NUMBERS = ("id", "start", "end", "agent", "stream", "queue", "address", "size", "stack")
_TEXTS = ("type", "level")
_PASSING = "SELECT id FROM rocpd_memory_allocate"


@frozen
class Allocations:
    """Allocations and frees in order of their starts; all columns are equally long.

    Args:
        row: id.
        start, end: [ns].
        agent, stream: ids, `NULL` where unknown.
        level: number in `Names`: REAL, VIRTUAL or SCRATCH.
        size: size of an allocation; for a free, the size of the allocation that it ends, else 0 [bytes].
        allocates: whether memory is held from then on.
        ends: row of the allocation that it ends, as it frees the memory or gets its address; -1: none.
        passes: whether it passes the filters; a free passes if its allocation does, as most frees name no agent.
        in_window: whether it starts in the window.
        stack: stack id of its call.
        names: names of the numbers of levels.
    """

    row: Ints
    start: Ints
    end: Ints
    agent: Ints
    stream: Ints
    level: Ints
    size: Ints
    allocates: Flags
    ends: Ints
    passes: Flags
    in_window: Flags
    stack: Ints
    names: Names

    @property
    def counts(self) -> Flags:
        """Whether each row passes the filters and starts in the window."""
        return self.passes & self.in_window

    @property
    def ended_by(self) -> Ints:
        """Row that ends each allocation; -1 where none does."""
        by = np.full(len(self.row), -1)
        ending = (self.ends >= 0).nonzero()[0]
        by[self.ends[ending]] = ending
        return by


@frozen
class Callers:
    """The calls that allocate and free; a number for each row of `Allocations`.

    Args:
        row: id of the call, `NULL` where unknown.
        call: number in `Names` of the function, `NULL` where unknown.
        marker: number in `Names` of the innermost marker around the call, `NULL`: none.
        duration: duration of the call, 0 where unknown [ns].
        names: names of the numbers.
    """

    row: Ints
    call: Ints
    marker: Ints
    duration: Ints
    names: Names

    @property
    def what(self) -> tuple[Ints, Ints]:
        """Function and marker of each call."""
        return self.call, self.marker


def read_allocations(reading: RankReading) -> Allocations:
    """Read all allocations and frees of a rank, regardless of the selection, so that pairs never depend on it.

    Do not change the result.
    """
    return reading.reader.once(_ALLOCATIONS, lambda: _read(reading))


_ALLOCATIONS = Fact("allocations", 2, (Allocations, TextCodes))


def _read(reading: RankReading) -> Allocations:
    select = Select(statement("allocation_calls"), _NUMBERS, texts=_TEXTS, base="rocpd_memory_allocate")
    piece = read_all(reading.reader.whole(), select)
    row, start, end, *_ = piece.numbers
    is_valid = valid_times(start, end)
    order = np.lexsort((row, start))
    order = order[is_valid[order]]
    names = Names()
    level = np.array([names.code(as_text(text)) for text in piece.texts[1]], np.int64)[order]
    allocates = np.array([kind in ALLOCATING for kind in piece.texts[0]], bool)[order]
    row, start, end, agent, stream, queue, address, size, stack = (column[order] for column in piece.numbers)
    is_scratch = level == names.code(SCRATCH)
    ends = freed(memory_keys(level, is_scratch, address, agent, queue), allocates)
    size = np.where(allocates, np.maximum(size, 0), 0)
    size = np.where(allocates | (ends < 0), size, size[ends])
    passes = np.ones(len(row), bool)
    if reading.reader.selects("rocpd_memory_allocate"):
        passes = np.isin(row, [number for (number,) in reading.unwindowed().reader.rows(_PASSING)])
    passes = np.where(allocates | (ends < 0), passes, passes[ends])
    part = reading.window.part
    in_window = (start >= (part.start or 0)) & (start < (part.end or LAST))
    return Allocations(row, start, end, agent, stream, level, size, allocates, ends, passes, in_window, stack, names)


def memory_keys(level: Ints, is_scratch: Flags, address: Ints, agent: Ints, queue: Ints) -> tuple[Ints, ...]:
    """Return columns that are equal for the same memory: level and address; for scratch memory, agent and queue.

    Reserved addresses (VIRTUAL) and the memory behind them (REAL) differ although their addresses are equal.

    Args:
        level: number of REAL, VIRTUAL or SCRATCH.
        is_scratch: whether it is SCRATCH.
        address: start of the memory; `NULL` or 0 where unknown, then agent and queue identify the memory.
        agent, queue: ids; scratch memory belongs to a queue.

    >>> level, agents, queues = np.zeros(2, np.int64), np.array([1, NULL]), np.array([2, 3])
    >>> real, scratch = (memory_keys(level, level < of, level + 4096, agents, queues) for of in (0, 1))
    >>> [[bool(column[0] == column[1]) for column in keys] for keys in (real, scratch)]
    [[True, True, True, True], [True, True, False, False]]
    """
    by_address = ~is_scratch & (address != NULL) & (address != 0)
    where = np.where(by_address, address, agent), np.where(by_address, 0, queue)
    return level, by_address.astype(np.int64), *where


def freed(keys: Sequence[Ints], allocates: Flags) -> Ints:
    """Return the row of the allocation that each row ends; -1: none.

    Args:
        keys: columns of rows in order of time, as from `memory_keys`.
        allocates: whether memory is held from a row on.

    >>> freed([np.zeros(4, np.int64)], np.array([True, True, False, False])).tolist()
    [-1, 0, 1, -1]
    """
    ends, memory = np.full(len(allocates), -1), numbered(*keys)
    order = np.argsort(memory, kind="stable")
    before, after = order[:-1], order[1:]
    is_end = (memory[before] == memory[after]) & allocates[before]
    ends[after[is_end]] = before[is_end]
    return ends


def read_callers(reading: RankReading, allocations: Allocations) -> Callers:
    """Return the calls that allocate and free in the whole trace of a rank; do not change the result."""
    whole = reading.whole()

    def derive() -> tuple[Callers, dict[str, int]]:
        return _read_callers(allocations, *calls_of(whole, allocations.stack)), dict(whole.left_out)

    callers, left_out = whole.reader.once(_CALLERS, derive)
    reading.also_left_out(left_out)
    return callers


_CALLERS = Fact("callers", 2, (Callers, TextCodes))


def _read_callers(allocations: Allocations, regions: RankRegions, call: Ints, names: Names) -> Callers:
    threads, marker = at_rows(regions.thread, call, NO_THREAD), np.full(len(call), NULL)
    for thread, around in marked_threads(regions, names, threads).items():
        rows = threads == thread
        marker[rows] = around.at(allocations.start[rows])
    row, function = (at_rows(column, call) for column in (regions.id, regions.name))
    return Callers(row, function, marker, at_rows(regions.end - regions.start, call, 0), names)


@frozen
class MemoryChanges:
    """Changes of held memory, in order of time: an allocation adds, its end takes away.

    Args:
        of: row of the allocation.
        by: row that makes the change: the allocation itself, or the row that ends it.
        bytes: size of the change, negative when memory is given back.
        held: bytes that its holder has from then on; Python integers where damaged sizes need them.
    """

    of: Ints
    by: Ints
    bytes: Ints
    held: Ints


def changes(allocations: Allocations) -> MemoryChanges:
    """Return the changes of the memory that each agent holds of each level."""
    holders = (allocations.agent, allocations.level)
    return changes_of(allocations.size, allocations.allocates, allocations.ends, holders)


def changes_of(size: Ints, allocates: Flags, ends: Ints, holders: Sequence[Ints]) -> MemoryChanges:
    """Return the changes of held memory.

    Args:
        size, allocates, ends: of rows in order of time, as in `Allocations`; sizes of frees do not matter.
        holders: columns by which allocations are added up.
    """
    made, ending = allocates.nonzero()[0], (ends >= 0).nonzero()[0]
    of, by = np.concatenate([ends[ending], made]), np.concatenate([ending, made])
    more = np.concatenate([-size[ends[ending]], size[made]])
    order = np.argsort(by, kind="stable")  # where an address is given out again, the old memory goes first
    of, by, more = of[order], by[order], more[order]
    held = more.copy() if total(np.abs(more)) < 1 << 63 else more.astype(object)
    for _, rows in grouped([column[of] for column in holders]):
        held[rows] = np.cumsum(held[rows])
    return MemoryChanges(of, by, more, held)
