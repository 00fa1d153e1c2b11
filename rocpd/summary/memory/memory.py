"""How much memory is held: the peak of each agent and its course over time.

An allocation counts from its start; a free ends the allocation of the same level and address (scratch memory: of the
same agent and queue) in its rank, whatever size and stream the free itself names. REAL, VIRTUAL (reserved addresses)
and SCRATCH memory are kept apart. What ranks, hosts or streams hold is what their allocations hold together at a time,
on the time line of all ranks. In a window memory counts from what was held before it; allocations and frees count by
their start.

Who allocates memory, what each step leaves behind, and what looks like a leak.

A site is a call and the innermost marker around it on its thread, # for numbers. An allocation is freed by the free of
the same memory, by the rule of `schema.rules.memory`. Windows select allocations by their start; frees are looked for
in the whole trace. Scratch memory, which the runtime takes by itself, is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Ints, Row
from rocpd.facts.columns import Names, Select, as_text, number, read_all, statement
from rocpd.facts.places import through_steps
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.facts.regions import RankRegions, marked_threads, read_ranges, read_regions, read_steps
from rocpd.facts.spread import total
from rocpd.schema.rules.events import ALLOCATING, LAST, SCRATCH, VALID_TIMES, held_by, valid_times
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import folded, is_step
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Total, merge, merge_groups, most_first, order_of, rows_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, Picture, TableDefinition, by_name

_LEVEL = Field("level", "", "REAL, VIRTUAL or SCRATCH")
_IDS = "SELECT id FROM rocpd_memory_allocate WHERE start BETWEEN ? AND ?"
_NUMBERS = ("id", "start", "end", "agent", "queue", "address", "size", "stack")
_TEXTS = ("type", "level")
_FEWEST = 4  # steps, before a repeated allocation is a habit
_MOST, _OFTEN = 0.9, 0.5  # of the steps

TABLES = by_name(
    TableDefinition(
        "memory",
        "Memory held by level: one row per rank, agent and level unless --by says otherwise.",
        (
            _LEVEL,
            Field("allocations", "", "allocations", True),
            Field("frees", "", "frees that found their allocation", True),
            Field("peak_bytes", "bytes", "most held at a time"),
            Field("peak_at_ns", "ns", "when the peak was first reached, from the start of the time line"),
            Field("held_bytes", "bytes", "still held at the end, of the window if there is one"),
            Field("unmatched_frees", "", "frees of what was never seen allocated; without agent", True),
            Field("capacity_bytes", "bytes", "memory of the agent; NULL where a row is not of one agent", True),
        ),
    ),
    TableDefinition(
        "memory-curve",
        "Most memory held in each slice of the time from first (in a window its start) to last allocation.",
        (
            _LEVEL,
            Field("at_ns", "ns", "start of the slice, from the start of the time line"),
            Field("peak_bytes", "bytes", "most held in the slice"),
        ),
        chart="rocpd.summary.plots:memory",
        picture=Picture("rocpd.summary.pictures:memory", is_all=True),
    ),
    TableDefinition(
        "allocation-sites",
        "Who allocates, by call and marker; most bytes first.",
        (
            Field("call", "", "function that allocates; NULL where its call is unknown"),
            Field("marker", "", "innermost marker around the call"),
            Field("level", "", "REAL or VIRTUAL"),
            Field("allocations", "", "allocations", True),
            Field("bytes", "bytes", "their sum"),
            Field("max_bytes", "bytes", "the largest", True),
            Field("held_bytes", "bytes", "what nothing frees in the trace"),
            Field("steps", "", "steps of the ranks in which it allocates", True),
            Field("churn", "", "allocations that are freed in the step that made them"),
            Field("leaking_steps", "", "steps that leave an allocation which nothing frees"),
            Field("churn_call_ns", "ns", "time of the calls that make and free what churns", True),
        ),
    ),
    TableDefinition(
        "memory-steps",
        "What each step allocates, frees and leaves behind, in order; all ranks together unless --by says otherwise.",
        (
            Field("step", "", "number of the step"),
            Field("ranks", "", "ranks that allocate or free in it", True),
            Field("allocations", "", "allocations"),
            Field("frees", "", "frees of known allocations"),
            Field("allocated_bytes", "bytes", "sum of allocations"),
            Field("freed_bytes", "bytes", "sum of what is freed"),
            Field("growth_bytes", "bytes", "allocated - freed"),
        ),
        chart="rocpd.summary.plots:memory_steps",
    ),
)

_SQL = """
SELECT {lane}, level, type, agent_id, queue_id, address, size, start FROM rocpd_memory_allocate
WHERE {valid} AND start < {end} ORDER BY start, id"""

_CAPACITIES = "SELECT id, memory_size FROM agents WHERE id IS NOT NULL"


@dataclass
class _Events:
    """What happens to the memory of one division and level of a rank, in order: when [ns], bytes more or less."""

    allocations: int = 0
    frees: int = 0
    unmatched: int = 0
    at: list[int] = field(default_factory=list)
    change: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.allocations or self.frees or self.unmatched or self.at)

    def add(self, at: int, change: int) -> None:
        self.at.append(at)
        self.change.append(change)

    def start_at(self, begin: int) -> None:
        """Make one change, to what is held there, of all up to the start of the window."""
        before = bisect_left(self.at, begin)
        held = sum(self.change[:before])
        self.at[:before], self.change[:before] = ([begin], [held]) if held else ([], [])

    def held(self) -> _Held:
        counts = self.allocations, self.frees, self.unmatched
        return _Held(*counts, np.array(self.at, np.int64), np.array(self.change, np.int64))


@frozen
class _Held:
    """The same as columns; those of several ranks one after the other, on one time line."""

    allocations: int
    frees: int
    unmatched: int
    at: Ints
    change: Ints

    def __add__(self, other: _Held) -> _Held:
        counts = (self.allocations + other.allocations, self.frees + other.frees, self.unmatched + other.unmatched)
        return _Held(*counts, np.append(self.at, other.at), np.append(self.change, other.change))

    def course(self) -> tuple[Ints, Ints]:
        """Return the times of changes in order, and the bytes held from then on."""
        order = np.argsort(self.at, kind="stable")
        change = self.change[order]
        # Damaged sizes can add up to more than 64 bits hold.
        return self.at[order], np.cumsum(change if total(np.abs(change)) < 1 << 63 else change.astype(object))


_Level = tuple[Key, str | None]  # division, level


def memory(reading: Reading) -> Tables:
    """Return the peak and the course of memory.

    Raises:
        RocpdError: no allocations.
    """
    levels: dict[_Level, _Held] = {}
    capacities: dict[Key, int | None] = {}
    yield (answers := reading.each(_of_rank))
    for rank, (levels_of_rank, capacities_of_rank) in answers:
        capacities |= capacities_of_rank
        shift = reading.shift(rank.number)
        merge(levels, {level: replace(held, at=shift.to_line(held.at)) for level, held in levels_of_rank.items()})
    if not levels:
        raise RocpdError("no memory allocations in the selection")
    rows: list[Row] = []
    curve: list[Row] = []
    for key, name in sorted(levels, key=lambda level: order_of((*level[0], level[1]))):
        held = levels[key, name]
        at, now = held.course()
        most = max(0, *now.tolist()) if len(now) else 0
        peak_at = int(at[np.argmax(now)]) if most else None
        last = int(now[-1]) if len(now) else 0
        capacity = capacities.get(key)
        rows.append((*key, name, held.allocations, held.frees, most, peak_at, last, held.unmatched, capacity))
        curve += [(*key, name, *point) for point in _slices(at, now, reading.options.bins)]
    yield reading.summary(TABLES["memory"], rows, By.AGENT)
    yield reading.summary(TABLES["memory-curve"], curve, By.AGENT)


def _of_rank(reading: RankReading) -> tuple[dict[_Level, _Held], dict[Key, int | None]]:
    """Follow the memory of one rank, in a window from what was held before it; return it, and what its agents have."""
    by = reading.options.by or By.AGENT
    part = reading.window.part
    follower = _Follower(-1 if part.start is None else part.start)
    select = _SQL.format(valid=VALID_TIMES, lane="stream_id" if by is By.STREAM else "agent_id", end=part.end or LAST)
    keys: dict[object, Key] = {}
    for rows in reading.unwindowed().reader.stream(select, size=1000):
        for lane, level, kind, *numbers in rows:
            key = keys.get(lane)
            if key is None:
                key = keys[lane] = key_of(by, reading.rank, number(lane))
            follower.follow(key, as_text(level), kind in ALLOCATING, *map(number, numbers))
    agents = reading.reader.rows(_CAPACITIES) if by is By.AGENT else []
    return follower.levels(), {key_of(by, reading.rank, agent): size for agent, size in agents}


@dataclass
class _Follower:
    """Follows the memory of one rank in order of time; `begin` is where the window starts [ns]."""

    begin: int
    events: dict[_Level, _Events] = field(default_factory=dict)
    live: dict[Hashable, tuple[_Events, int]] = field(default_factory=dict)

    def follow(self, key: Key, level: str | None, allocates: bool, *numbers: int) -> None:
        """Follow an allocation or a free; numbers are its agent, queue, address, size and start."""
        agent, queue, address, size, start = numbers
        counts = start >= self.begin
        memory = held_by(level, address, agent, queue)
        held = self.live.pop(memory, None)
        if held:  # freed, or its address was given out again
            held[0].add(start, -held[1])
        if allocates:
            events = self.events.get((key, level))
            if events is None:
                events = self.events[key, level] = _Events()
            events.allocations += counts
            events.add(start, max(0, size))
            self.live[memory] = events, max(0, size)
        elif held:
            held[0].frees += counts
        elif counts:
            self.events.setdefault((key, level), _Events()).unmatched += 1

    def levels(self) -> dict[_Level, _Held]:
        """Return what happened in the window; what was held before it is there from its start."""
        for events in self.events.values():
            events.start_at(self.begin)
        return {level: events.held() for level, events in self.events.items() if events}


def _slices(at: Ints, now: Ints, bins: int) -> Iterator[tuple[int, int]]:
    """Yield start and largest value of up to `bins` equal slices; what a change at its start ends is not in one."""
    if not len(at):
        return
    width = max(1, -(-(int(at[-1] - at[0]) + 1) // bins))
    starts = range(int(at[0]), int(at[-1]) + 1, width)
    edges = [*np.searchsorted(at, np.array(starts)).tolist(), len(at)]
    for start, low, high in zip(starts, edges, edges[1:], strict=False):
        first = low if low < len(at) and at[low] == start else low - 1
        yield start, int(now[first:high].max())


class _Site(NamedTuple):
    call: str | None
    marker: str | None
    level: str | None


class _Largest(int):
    """The largest of some sizes [bytes]."""

    def __add__(self, other: int) -> _Largest:
        return _Largest(max(self, other))


@frozen
class _SiteSum(Total):
    """What a site allocates: `held` is never freed [bytes], `churn` in its own step; `steps` by rank and step.

    `churn_time` is that of the calls that make and free what churns [ns].
    """

    allocations: int
    size: int
    largest: _Largest
    held: int
    steps: int
    churn: int
    leaking: int
    churn_time: int = 0


@frozen
class _StepSum(Total):
    ranks: int
    allocations: int
    frees: int
    allocated: int
    freed: int


@dataclass
class _Rank:
    """What one rank adds, by division.

    Args:
        sites: what each site allocates.
        by_step: what each step allocates and frees.
        steps: how many steps the rank has.
        leaks: sites that leave memory behind in nearly every step -> how much in all [bytes].
    """

    sites: dict[Key, dict[_Site, _SiteSum]] = field(default_factory=dict)
    by_step: dict[Key, dict[int, _StepSum]] = field(default_factory=dict)
    steps: int = 0
    leaks: dict[_Site, int] = field(default_factory=dict)


@dataclass
class _Allocation:
    """An allocation, and what frees it; `counts`, `free_counts`: whether they lie in what was selected.

    `time` is that of the calls that make and free it [ns].
    """

    agent: int
    site: _Site
    size: int
    step: int | None
    counts: bool
    time: int
    is_freed: bool = False
    freed_in: int | None = None
    free_counts: bool = False


class _History(NamedTuple):
    """All allocations of a rank by their start, how many steps it has, and what is left out."""

    allocations: Sequence[_Allocation]
    steps: int
    left_out: Counter[str]


def allocation_sites(reading: Reading) -> Tables:
    """Return who allocates, and what steps leave behind.

    Raises:
        RocpdError: no allocations.
    """
    job = _Rank()
    leaks: dict[_Site, list[tuple[int, int]]] = {}
    every = 0
    yield (answers := reading.each(partial(_sites_of_rank, step=is_step(reading.options.step_marker))))
    for rank, of_rank in answers:
        merge_groups(job.sites, of_rank.sites)
        merge_groups(job.by_step, of_rank.by_step)
        for leak, size in of_rank.leaks.items():
            leaks.setdefault(leak, []).append((rank.number, size))
        job.steps = max(job.steps, of_rank.steps)
        every += of_rank.steps
    if not job.sites:
        raise RocpdError("no memory allocations in the selection")
    yield reading.summary(
        TABLES["allocation-sites"], rows_of(job.sites, _site_rows), findings=_findings(job, leaks, every)
    )
    if job.by_step:
        yield reading.summary(TABLES["memory-steps"], rows_of(job.by_step, _step_rows))


def _sites_of_rank(reading: RankReading, step: re.Pattern[str]) -> _Rank:
    history = reading.reader.once(("allocations", step), lambda: _history(reading, step))
    reading.left_out.update(history.left_out)
    answer = _Rank(steps=history.steps)
    by = reading.options.by
    keys = {agent: key_of(by, reading.rank, agent) for agent in {made.agent for made in history.allocations}}
    by_key: dict[Key, list[_Allocation]] = {}
    for made in history.allocations:
        by_key.setdefault(keys[made.agent], []).append(made)
    held = Counter[_Site]()
    left = dict[_Site, set[int]]()
    for key, allocations in by_key.items():
        _add_steps(answer, key, allocations)
        for site, numbers in _add_sites(answer, key, [made for made in allocations if made.counts]).items():
            left.setdefault(site, set()).update(numbers)
            held[site] += answer.sites[key][site].held
    if answer.steps >= _FEWEST:
        answer.leaks = {site: held[site] for site, numbers in left.items() if len(numbers) >= answer.steps * _MOST}
    return answer


def _history(reading: RankReading, step: re.Pattern[str]) -> _History:
    whole = reading.whole()
    piece = read_all(
        whole.reader, Select(statement("allocation_calls"), _NUMBERS, texts=_TEXTS, base="rocpd_memory_allocate")
    )
    if not piece.count:
        return _History((), 0, Counter())
    part = reading.window.part
    low, high = 1 if part.start is None else part.start, LAST if part.end is None else part.end - 1
    counted = {row for (row,) in reading.unwindowed().reader.rows(_IDS, (low, high))}
    calls, times = _calls(*read_regions(whole), piece.numbers[7], piece.numbers[1])
    ranges = read_ranges(whole.reader).every
    steps = read_steps(whole.reader, step)
    row, start, end, agent, queue, address, size, _ = piece.numbers
    order = np.lexsort((row, start))
    live: dict[Hashable, _Allocation] = {}
    done: list[_Allocation] = []
    in_step = through_steps(ranges, steps).at(start)
    for at in order[valid_times(start, end)[order]].tolist():
        kind, level = (as_text(column[at]) for column in piece.texts)
        if level == SCRATCH:
            continue
        memory = held_by(level, int(address[at]), int(agent[at]), int(queue[at]))
        now, counts = in_step[at][0], int(row[at]) in counted
        held = live.pop(memory, None)
        if held:
            held.is_freed, held.freed_in, held.free_counts = True, now, counts
            held.time += times[at]
        if kind in ALLOCATING:
            where = _Site(calls[at][0], calls[at][1], level)
            made = _Allocation(int(agent[at]), where, max(0, int(size[at])), now, counts, times[at])
            live[memory] = made
            done.append(made)
    return _History(done, sum(each.number is not None for each in steps), whole.left_out)


def _calls(
    regions: RankRegions, names: Names, stack: Ints, start: Ints
) -> tuple[list[tuple[str | None, str | None]], list[int]]:
    """Return function and marker of the call of each allocation or free, and how long it took [ns]."""
    call = launching_regions(regions.stack, regions.start, regions.end, stack)
    marked = marked_threads(regions, names)
    markers = np.full(len(call), NULL)
    for thread, around in marked.items():
        rows = np.flatnonzero((call >= 0) & (regions.thread[call] == thread)) if len(regions.start) else call[:0]
        markers[rows] = around.at(start[rows])
    functions = [names.texts[regions.name[at]] if at >= 0 else None for at in call.tolist()]
    texts = [None if code == NULL else folded(names.texts[code] or "") for code in markers.tolist()]
    times = [int(regions.end[at] - regions.start[at]) if at >= 0 else 0 for at in call.tolist()]
    return list(zip(functions, texts, strict=True)), times


def _add_steps(answer: _Rank, key: Key, allocations: Sequence[_Allocation]) -> None:
    """Add what the steps of a rank allocate and free."""
    sums: dict[int, list[int]] = {}
    for made in allocations:
        if made.step is not None and made.counts:
            total = sums.setdefault(made.step, [0, 0, 0, 0])
            total[0] += 1
            total[2] += made.size
        if made.freed_in is not None and made.free_counts:
            total = sums.setdefault(made.freed_in, [0, 0, 0, 0])
            total[1] += 1
            total[3] += made.size
    if sums:
        answer.by_step[key] = {step: _StepSum(1, *total) for step, total in sums.items()}


def _add_sites(answer: _Rank, key: Key, allocations: Sequence[_Allocation]) -> dict[_Site, set[int]]:
    """Add what the sites of a rank allocate; return the steps in which each leaves memory behind."""
    by_site: dict[_Site, list[_Allocation]] = {}
    for made in allocations:
        by_site.setdefault(made.site, []).append(made)
    leaving: dict[_Site, set[int]] = {}
    for site, some in by_site.items():
        steps = {made.step for made in some} - {None}
        left = {made.step for made in some if made.step is not None and not made.is_freed}
        held = sum(made.size for made in some if not made.is_freed)
        churn = [made for made in some if made.is_freed and made.step is not None and made.step == made.freed_in]
        size, time = sum(made.size for made in some), sum(made.time for made in churn)
        largest = _Largest(max(made.size for made in some))
        total = _SiteSum(len(some), size, largest, held, len(steps), len(churn), len(left), time)
        answer.sites.setdefault(key, {})[site] = total
        if left:
            leaving[site] = left
    return leaving


def _site_rows(key: Key, sites: Mapping[_Site, _SiteSum]) -> Iterator[Row]:
    for site, s in most_first(sites, lambda s: s.size):
        sizes = s.allocations, s.size, int(s.largest), s.held
        yield (*key, *site, *sizes, s.steps, s.churn, s.leaking, s.churn_time)


def _step_rows(key: Key, steps: Mapping[int, _StepSum]) -> Iterator[Row]:
    for step, s in sorted(steps.items()):
        yield (*key, step, s.ranks, s.allocations, s.frees, s.allocated, s.freed, s.allocated - s.freed)


def _findings(job: _Rank, leaks: Mapping[_Site, Sequence[tuple[int, int]]], every: int) -> Iterator[Finding]:
    """Name sites that leave memory in nearly every step, and those that allocate and free in most.

    Args:
        job: all ranks together.
        leaks: sites that leave memory -> rank, and how much [bytes].
        every: steps of all ranks.
    """
    from rocpd.table.human import readable

    sites: dict[_Site, _SiteSum] = {}
    for of_division in job.sites.values():
        merge(sites, of_division)
    for site, ranks in sorted(leaks.items(), key=lambda item: -sum(size for _, size in item[1])):
        size = sum(size for _, size in ranks)
        on = f"rank {ranks[0][0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"
        left = readable(size, "bytes")
        text = f"leak candidate: {_place(site)} leaves {left} behind, some in nearly every step, on {on}"
        left_behind = {"held_bytes": size, "ranks": len(ranks), "steps": job.steps}
        rank = ranks[0][0] if len(ranks) == 1 else None
        yield Finding(text, "memory.leak", Verdict.PROBLEM, Confidence.HINT, rank, evidence=left_behind)
    churning = {site: s for site, s in sites.items() if job.steps >= _FEWEST and s.churn >= s.steps > every * _OFTEN}
    for site, s in sorted(churning.items(), key=lambda item: -item[1].churn):
        each = s.churn / s.steps
        text = (
            f"{_place(site)} allocates {each:.0f} times in each step what the step frees again: a pool would save that"
        )
        evidence: dict[str, object] = {"call": site.call, "marker": site.marker, "churn": s.churn, "steps": s.steps}
        yield Finding(text, "alloc.steady", Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)
    if not leaks and not churning:
        verdict = Verdict.NONE if job.steps >= _FEWEST else Verdict.UNKNOWN
        text = "no memory is left behind step after step" if job.steps >= _FEWEST else "too few steps to see a leak"
        yield Finding(text, "memory.leak", verdict, Confidence.LIKELY)


def _place(site: _Site) -> str:
    return f"{site.call or 'an unknown call'}{f' in {site.marker}' if site.marker else ''}"
