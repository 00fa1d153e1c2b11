"""Who allocates memory, what each step leaves behind, and what looks like a leak.

A site is a call and the innermost marker around it on its thread, # for numbers. An allocation is freed by the free of
the same memory, by the rule of `rocpd.trace.memory`. Windows select allocations by their start; frees are looked for in
the whole trace. Scratch memory, which the runtime takes by itself, is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import Select, read_all
from rocpd.read.names import Names, as_text
from rocpd.summary.course import through_steps
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.marked import marked_threads
from rocpd.summary.reading import Key, RankReading, Reading, key_of, order_of
from rocpd.summary.regions import RankRegions, read_regions
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.statements import statement
from rocpd.summary.steps import read_ranges, read_steps
from rocpd.summary.sums import Total, merge
from rocpd.trace.launch import launching_regions
from rocpd.trace.memory import ALLOCATING, SCRATCH, held_by
from rocpd.trace.steps import folded, is_step
from rocpd.trace.times import LAST, valid_times
from rocpd.types import NULL, Ints, Row

_IDS = "SELECT id FROM rocpd_memory_allocate WHERE start BETWEEN ? AND ?"
_NUMBERS = ("id", "start", "end", "agent", "queue", "address", "size", "stack")
_TEXTS = ("type", "level")
_FEWEST = 4  # steps, before a repeated allocation is a habit
_MOST, _OFTEN = 0.9, 0.5  # of the steps

TABLES = by_name(
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


class _Site(NamedTuple):
    call: str | None
    marker: str | None
    level: str | None


@frozen
class _SiteSum(Total):
    """What a site allocates: `held` is never freed [bytes], `churn` in its own step; `steps` by rank and step.

    `churn_time` is that of the calls that make and free what churns [ns].
    """

    allocations: int
    size: int
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
        largest: the largest allocation of each [bytes].
        by_step: what each step allocates and frees.
        steps: how many steps the rank has.
        leaks: sites that leave memory behind in nearly every step -> how much in all [bytes].
    """

    sites: dict[Key, dict[_Site, _SiteSum]] = field(default_factory=dict)
    largest: dict[tuple[Key, _Site], int] = field(default_factory=dict)
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


def allocation_sites(reading: Reading) -> Iterator[Summary]:
    """Return who allocates, and what steps leave behind.

    Raises:
        RocpdError: no allocations.
    """
    job = _Rank()
    leaks: dict[_Site, list[tuple[int, int]]] = {}
    every = 0
    for rank, added in reading.each(partial(_of_rank, step=is_step(reading.options.step_marker))):
        for key, sites in added.sites.items():
            merge(job.sites.setdefault(key, {}), sites)
        for key, steps in added.by_step.items():
            merge(job.by_step.setdefault(key, {}), steps)
        for site, size in added.largest.items():
            job.largest[site] = max(size, job.largest.get(site, 0))
        for leak, size in added.leaks.items():
            leaks.setdefault(leak, []).append((rank.number, size))
        job.steps = max(job.steps, added.steps)
        every += added.steps
    if not job.sites:
        raise RocpdError("no memory allocations in the selection")
    yield reading.summary(TABLES["allocation-sites"], _site_rows(job), findings=_findings(job, leaks, every))
    if job.by_step:
        yield reading.summary(TABLES["memory-steps"], _step_rows(job))


def _of_rank(reading: RankReading, step: re.Pattern[str]) -> _Rank:
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
        total = _SiteSum(len(some), size, held, len(steps), len(churn), len(left), time)
        answer.sites.setdefault(key, {})[site] = total
        answer.largest[key, site] = max(made.size for made in some)
        if left:
            leaving[site] = left
    return leaving


def _site_rows(job: _Rank) -> Iterator[Row]:
    for key in sorted(job.sites, key=order_of):
        sites = job.sites[key]
        for site in sorted(sites, key=lambda site: (-sites[site].size, order_of(site))):
            s = sites[site]
            yield (
                *key,
                *site,
                s.allocations,
                s.size,
                job.largest[key, site],
                s.held,
                s.steps,
                s.churn,
                s.leaking,
                s.churn_time,
            )


def _step_rows(job: _Rank) -> Iterator[Row]:
    for key in sorted(job.by_step, key=order_of):
        for step, s in sorted(job.by_step[key].items()):
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
        evidence: dict[str, object] = {
            "call": site.call,
            "marker": site.marker,
            "churn": s.churn,
            "steps": s.steps,
        }
        yield Finding(text, "alloc.steady", Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)
    if not leaks and not churning:
        verdict = Verdict.NONE if job.steps >= _FEWEST else Verdict.UNKNOWN
        text = "no memory is left behind step after step" if job.steps >= _FEWEST else "too few steps to see a leak"
        yield Finding(text, "memory.leak", verdict, Confidence.LIKELY)


def _place(site: _Site) -> str:
    return f"{site.call or 'an unknown call'}{f' in {site.marker}' if site.marker else ''}"
