"""The memory held: the peak of each agent and its course over time.

An allocation counts from its start; a free ends the allocation of the same level and address (scratch memory: of the
same agent and queue) in its rank, whatever size and stream the free itself names. REAL, VIRTUAL (reserved addresses)
and SCRATCH memory are kept apart. The memory of ranks, hosts or streams is that of all their allocations at a time, on
the time line of all ranks. In a window, memory counts from the amount held before it; allocations and frees count by
their start.

Also the sites that allocate, the memory that steps leave behind, and candidates for leaks.

A site is a call and the innermost marker around it on its thread, with # for numbers. An allocation is freed by the
free of the same memory, by the rule of `schema.rules.memory`. Windows select allocations by their start; frees are
searched in the whole trace. Scratch memory, which the runtime takes by itself, is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Flags, Ints, Row
from rocpd.facts.columns import Names, grouped
from rocpd.facts.memory import Allocations, changes, read_allocations, read_callers
from rocpd.facts.places import through_steps
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.facts.regions import read_steps
from rocpd.facts.spread import total
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.events import SCRATCH
from rocpd.schema.rules.steps import folded, is_step
from rocpd.summary import grouping
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, Picture, by_name, table_of

LEAK = "memory.leak"
"""The rule of findings on memory that steps leave behind."""

_LEVEL = Field("level", "", "REAL, VIRTUAL or SCRATCH")
_FEWEST = 4  # steps before a repeated allocation is a habit
_MOST, _OFTEN = 0.9, 0.5  # of the steps
_HELD = 3  # place of the bytes never freed among the sums of a site

TABLES = by_name(
    table_of(
        "memory",
        "Memory held by level: one row per rank, agent and level unless --by says otherwise.",
        _LEVEL,
        Field("allocations", "", "allocations", True),
        Field("frees", "", "frees that found their allocation", True),
        Field("peak_bytes", "bytes", "most held at a time"),
        Field("peak_at_ns", "ns", "when the peak was first reached, from the start of the time line"),
        Field("held_bytes", "bytes", "still held at the end, of the window if there is one"),
        Field("unmatched_frees", "", "frees of memory whose allocation is not recorded; without agent", True),
        Field("capacity_bytes", "bytes", "memory of the agent; NULL where a row is not of one agent", True),
    ),
    table_of(
        "memory-curve",
        "Most memory held in each slice of the time from first (in a window its start) to last allocation.",
        _LEVEL,
        Field("at_ns", "ns", "start of the slice, from the start of the time line"),
        Field("peak_bytes", "bytes", "most held in the slice"),
        chart="rocpd.summary.plots:memory",
        picture=Picture("rocpd.summary.pictures:memory", is_all=True),
    ),
    table_of(
        "allocation-sites",
        "Who allocates, by call and marker; most bytes first.",
        Field("call", "", "function that allocates; NULL where its call is unknown"),
        Field("marker", "", "innermost marker around the call"),
        Field("level", "", "REAL or VIRTUAL"),
        Field("allocations", "", "allocations", True),
        Field("bytes", "bytes", "their sum"),
        Field("max_bytes", "bytes", "the largest", True),
        Field("held_bytes", "bytes", "memory that nothing frees in the trace"),
        Field("steps", "", "steps of the ranks in which it allocates", True),
        Field("churn", "", "allocations that are freed in the step that made them"),
        Field("leaking_steps", "", "steps that leave an allocation which nothing frees"),
        Field("churn_call_ns", "ns", "time of the calls that make and free the churn", True),
    ),
    table_of(
        "memory-steps",
        "What each step allocates, frees and leaves behind, in order; all ranks together unless --by says otherwise.",
        Field("step", "", "number of the step"),
        Field("ranks", "", "ranks that allocate or free in it", True),
        Field("allocations", "", "allocations"),
        Field("frees", "", "frees of known allocations"),
        Field("allocated_bytes", "bytes", "sum of allocations"),
        Field("freed_bytes", "bytes", "sum of the freed memory"),
        Field("growth_bytes", "bytes", "allocated - freed"),
        chart="rocpd.summary.plots:memory_steps",
    ),
)

_CAPACITIES = "SELECT id, memory_size FROM agents WHERE id IS NOT NULL"


_Level = tuple[Key, str | None]  # division, level


def memory(reading: Reading) -> Tables:
    """Return the peak and the course of memory.

    Raises:
        RocpdError: there are no allocations.
    """
    levels: dict[_Level, grouping.Sums] = {}
    capacities: dict[Key, int | None] = {}
    sites: list[tuple[object, _OfSites]] = []
    yield (answers := reading.each(partial(_read_memory, step=is_step(reading.options.step_marker))))
    for rank, ((levels_of_rank, capacities_of_rank), sites_of_rank) in answers:
        capacities |= capacities_of_rank
        sites.append((rank, sites_of_rank))
        shift = reading.shift(rank.number)
        for level, (*counts, (at,), change) in levels_of_rank.items():
            grouping.merge(levels, {level: grouping.Sums((*counts, [shift.to_line(at)], change))})
    if not levels:
        raise grouping.nothing("memory allocations")
    rows: list[Row] = []
    curves: list[tuple[Row, Ints]] = []
    for key, name in sorted(levels, key=lambda level: grouping.order_of((*level[0], level[1]))):
        allocations, frees, unmatched, *events = levels[key, name]
        at, now = _course(*map(np.concatenate, events))
        most = max(0, *now.tolist()) if len(now) else 0
        peak_at = int(at[np.argmax(now)]) if most else None
        last = int(now[-1]) if len(now) else 0
        rows.append((*key, name, allocations, frees, most, peak_at, last, unmatched, capacities.get(key)))
        points = list(_slices(at, now, reading.options.bins))
        curves.append(((*key, name), np.array(points, now.dtype).reshape(-1, 2)))
    yield reading.summary(TABLES["memory"], rows, By.AGENT, _findings(*grouping.added(sites)))
    yield reading.summary(TABLES["memory-curve"], partial(_curve_rows, curves), By.AGENT)


def _curve_rows(curves: Sequence[tuple[Row, Ints]]) -> Iterator[Row]:
    """Yield the points of curves; as rows, those of a thousand ranks take 30 MB."""
    return ((*level, *point) for level, points in curves for point in points.tolist())


def _read_memory(reading: RankReading, step: re.Pattern[str]) -> tuple[_OfLevels, _OfSites]:
    """Return the memory held by one rank, and that left behind by its steps."""
    sites = reading.derived(_SITES, partial(_read_sites, step=step))
    return reading.derived(_HELD_BY_LEVEL, _read_levels), sites


def _course(at: Ints, change: Ints) -> tuple[Ints, Ints]:
    """Return the times of changes in order, and the bytes held from each on."""
    order = np.argsort(at, kind="stable")
    change = change[order]
    # Damaged sizes can add up to more than fits into 64 bits.
    return at[order], np.cumsum(change if total(np.abs(change)) < 1 << 63 else change.astype(object))


_HELD_BY_LEVEL = Fact("memory", 1, (grouping.Sums,))

_OfLevels = tuple[dict[_Level, grouping.Sums], dict[Key, int | None]]


def _read_levels(reading: RankReading) -> _OfLevels:
    """Return the memory of one rank by level, and the capacities of its agents [bytes].

    Each level has allocations, frees, frees of memory never seen allocated; and times and bytes of changes, each in a
    list to which further ranks are added. In a window, memory held before its start counts from the start on.
    """
    by, part = reading.options.by or By.AGENT, reading.window.part
    begin = -1 if part.start is None else part.start
    allocations = read_allocations(reading)
    lane = {By.AGENT: allocations.agent, By.STREAM: allocations.stream}.get(by, np.zeros_like(allocations.agent))
    change, lost = changes(allocations), (~allocations.allocates & (allocations.ends < 0)).nonzero()[0]
    of, cause = np.append(change.of, lost), np.append(change.by, lost)
    more = np.append(change.bytes, np.zeros_like(lost))
    known = allocations.passes[of] & (allocations.in_window[cause] | (allocations.start[cause] < begin))
    of, cause, more = of[known], cause[known], more[known]
    allocates = allocations.allocates
    kind = np.where(of == cause, np.where(allocates[of], 0, 2), np.where(allocates[cause], 3, 1))
    at, level = allocations.start[cause], allocations.level
    levels: dict[_Level, grouping.Sums] = {}
    for (number, code), rows in grouped([lane[of], level[of]]):
        inside, before = rows[at[rows] >= begin], rows[at[rows] < begin]
        counts = [int((kind[inside] == each).sum()) for each in range(3)]
        held, changing = sum(more[before].tolist()), inside[kind[inside] != 2]
        times = np.append(np.array([begin] if held else [], np.int64), at[changing])
        sizes = np.append(np.array([held] if held else [], np.int64), more[changing])
        if len(times) or any(counts):
            of_level = key_of(by, reading.rank, number), allocations.names.texts[code]
            levels[of_level] = grouping.Sums((*counts, [times], [sizes]))
    agents = reading.reader.rows(_CAPACITIES) if by is By.AGENT else []
    return levels, {key_of(by, reading.rank, agent): size for agent, size in agents}


def _slices(at: Ints, now: Ints, bins: int) -> Iterator[tuple[int, int]]:
    """Yield start and peak of up to `bins` equal slices; memory freed at the start of a slice is not in it."""
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


_Sites = dict[Key, dict[_Site, grouping.Sums]]
"""Division -> site -> allocations, bytes, the largest, bytes never freed; by rank and step: its steps, allocations that
are freed in their own step (churn), steps that leave some behind; time of the calls that make and free churning ones
[ns]."""

_BySteps = dict[Key, dict[int, grouping.Sums]]
"""Division -> step -> ranks, allocations, frees, bytes of both."""

_Leaks = dict[_Site, list[tuple[int, int]]]
"""Sites that leave memory behind in nearly every step -> ranks, and the total left on each [bytes]."""


def allocation_sites(reading: Reading) -> Tables:
    """Return the sites that allocate, and the memory that steps leave behind.

    Raises:
        RocpdError: there are no allocations.
    """
    work = partial(_read_sites, step=is_step(reading.options.step_marker))
    sites, by_step, *more = yield from reading.summed(work, _SITES, what="memory allocations")
    findings = _findings(sites, by_step, *more)
    yield reading.summary(TABLES["allocation-sites"], grouping.rows_of(sites, _site_rows), findings=findings)
    if by_step:
        yield reading.summary(TABLES["memory-steps"], grouping.rows_of(by_step, _step_rows))


_SITES = Fact("sites", 1, (_Site, grouping.Sums, grouping.Largest))

_OfSites = tuple[_Sites, _BySteps, _Leaks, dict[str, int]]


def _read_sites(reading: RankReading, step: re.Pattern[str]) -> _OfSites:
    """Return the sums of the sites and steps of one rank, its leaks, and its number of steps, as maximum and as sum.

    Two analyses of a report ask for it; it must not be changed.
    """
    counting = replace(reading, left_out=Counter())
    asked = "sites", step, reading.options.by, reading.window
    sites, left_out = reading.reader.once(asked, lambda: (_sites_of_rank(counting, step), counting.left_out))
    reading.also_left_out(left_out)
    return sites


def _sites_of_rank(reading: RankReading, step: re.Pattern[str]) -> _OfSites:
    allocations = read_allocations(reading)
    if not len(allocations.row):
        return {}, {}, {}, {}
    names = Names()
    made = _made(reading, allocations, step, names)
    count = sum(each.number is not None for each in read_steps(reading.reader, step))
    lanes = made.agent if reading.options.by is By.AGENT else np.zeros_like(made.agent)
    sites: _Sites = {}
    left: dict[_Site, set[int]] = {}
    held: Counter[_Site] = Counter()
    counted = made.counts.nonzero()[0]
    for (lane, *codes), rows in grouped([column[counted] for column in (lanes, made.call, made.marker, made.level)]):
        site = _Site(*(names.texts[code] for code in codes))
        sums, leaving = _of_site(made, counted[rows])
        grouping.add(sites, reading.key(lane), site, sums)
        if leaving:
            left.setdefault(site, set()).update(leaving)
            held[site] += sums[_HELD]
    most = count * _MOST if count >= _FEWEST else math.inf
    leaks = {site: [(reading.rank.number, held[site])] for site, numbers in left.items() if len(numbers) >= most}
    return sites, _by_step(reading, made, lanes), leaks, {"most": grouping.Largest(count), "all": count}


class Made(NamedTuple):
    """Allocations of a rank without scratch memory.

    Args:
        agent: the agent.
        call, marker, level: numbers of names.
        bytes: size [bytes].
        step: number of the step; `NULL` outside of steps.
        counts: whether it counts.
        time: time of the calls that make and free it [ns].
        is_freed: whether a free ends it.
        freed_in: number of the step of its free; `NULL` outside of steps.
        free_counts: whether its free counts.
    """

    agent: Ints
    call: Ints
    marker: Ints
    level: Ints
    bytes: Ints
    step: Ints
    counts: Flags
    time: Ints
    is_freed: Flags
    freed_in: Ints
    free_counts: Flags


def _made(reading: RankReading, allocations: Allocations, step: re.Pattern[str], names: Names) -> Made:
    """Return the allocations of a rank without scratch memory; their names are added to `names`."""
    callers, texts = read_callers(reading, allocations), allocations.names.texts
    known = dict(enumerate(callers.names.texts))
    numbers = (number for (number,) in through_steps(reading.reader, step).at(allocations.start))
    in_step = np.array([NULL if number is None else number for number in numbers])
    is_memory = np.array([text != SCRATCH for text in texts], bool)[allocations.level]
    made = (allocations.allocates & is_memory).nonzero()[0]
    freed_by = allocations.ended_by[made]
    is_freed = freed_by >= 0
    return Made(
        agent=allocations.agent[made],
        call=names.codes(callers.call[made], known.get),
        marker=names.codes(callers.marker[made], lambda code: None if code == NULL else folded(known[code] or "")),
        level=names.codes(allocations.level[made], texts.__getitem__),
        bytes=allocations.size[made],
        step=in_step[made],
        counts=allocations.counts[made],
        time=callers.duration[made] + np.where(is_freed, callers.duration[freed_by], 0),
        is_freed=is_freed,
        freed_in=np.where(is_freed, in_step[freed_by], NULL),
        free_counts=is_freed & allocations.counts[freed_by],
    )


def _by_step(reading: RankReading, made: Made, lanes: Ints) -> _BySteps:
    """Return the allocations and frees of a rank by step."""
    steps: _BySteps = {}
    for at, (step, counts) in enumerate(((made.step, made.counts), (made.freed_in, made.free_counts))):
        chosen = ((step != NULL) & counts).nonzero()[0]
        for (lane, number), rows in grouped([lanes[chosen], step[chosen]]):
            count, size = len(rows), total(made.bytes[chosen[rows]])
            sums = (0, count, 0, size) if at else (count, 0, size, 0)
            grouping.add(steps, reading.key(lane), number, grouping.Sums((grouping.Largest(1), *sums)))
    return {
        key: {step: grouping.Sums((1, *rest)) for step, (_, *rest) in of_key.items()} for key, of_key in steps.items()
    }


def _of_site(made: Made, rows: Ints) -> tuple[grouping.Sums, set[int]]:
    """Return the sums of a site of a rank, and the steps in which it leaves memory behind."""
    step, size, is_freed = made.step[rows], made.bytes[rows], made.is_freed[rows]
    leaving = set(step[(step != NULL) & ~is_freed].tolist())
    churn = is_freed & (step != NULL) & (step == made.freed_in[rows])
    sizes = len(rows), total(size), grouping.Largest(size.max()), total(size[~is_freed])
    steps = len(set(step[step != NULL].tolist())), int(churn.sum()), len(leaving)
    return grouping.Sums((*sizes, *steps, total(made.time[rows[churn]]))), leaving


def _site_rows(key: Key, sites: Mapping[_Site, grouping.Sums]) -> Iterator[Row]:
    return ((*key, *site, *map(int, sums)) for site, sums in grouping.most_first(sites, lambda sums: sums[1]))


def _step_rows(key: Key, steps: Mapping[int, grouping.Sums]) -> Iterator[Row]:
    for step, (ranks, *counts, more, less) in sorted(steps.items()):
        yield (*key, step, ranks, *counts, more, less, more - less)


def _findings(every_site: _Sites, _: _BySteps, leaks: _Leaks, counts: Mapping[str, int]) -> Iterator[Finding]:
    """Yield findings on sites that leave memory in nearly every step, and on sites that allocate and free in most.

    Args:
        every_site: the sites of all ranks.
        leaks: sites that leave memory.
        counts: number of steps of the rank with most, and of all ranks.
    """
    from rocpd.table.human import readable

    steps, in_all = (counts.get(whose, 0) for whose in ("most", "all"))
    sites: dict[_Site, grouping.Sums] = {}
    for of_division in every_site.values():
        grouping.merge(sites, of_division)
    churned = {site: (churn, in_steps) for site, (*_, in_steps, churn, _, _) in sites.items()}
    for site, ranks in sorted(leaks.items(), key=lambda item: -sum(size for _, size in item[1])):
        size = sum(size for _, size in ranks)
        on = f"rank {ranks[0][0]}" if len(ranks) == 1 else f"each of {len(ranks)} ranks"
        left, each = readable(size, "bytes"), readable(size / len(ranks) / steps, "bytes")
        text = f"leak candidate: {_place(site)} leaves {left} behind, {each} a step on {on}"
        left_behind: dict[str, object] = {"held_bytes": size, "ranks": len(ranks), "steps": int(steps)}
        left_behind |= {"call": site.call, "marker": site.marker}
        rank = ranks[0][0] if len(ranks) == 1 else None
        yield Finding(text, LEAK, Verdict.PROBLEM, Confidence.HINT, rank, evidence=left_behind)
    is_long = steps >= _FEWEST
    if not leaks:
        verdict = Verdict.NONE if is_long else Verdict.UNKNOWN
        text = "no memory is left behind step after step" if is_long else "too few steps to see a leak"
        yield Finding(text, LEAK, verdict, Confidence.LIKELY)
    churning = [site for site, (churn, in_steps) in churned.items() if is_long and churn >= in_steps > in_all * _OFTEN]
    for site in sorted(churning, key=lambda site: -churned[site][0]):
        churn, in_steps = churned[site]
        each = churn / in_steps
        text = (
            f"{_place(site)} allocates {each:.0f} times in each step what the step frees again: a pool would save that"
        )
        evidence: dict[str, object] = {"call": site.call, "marker": site.marker, "churn": churn, "steps": in_steps}
        yield Finding(text, "alloc.steady", Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)


def _place(site: _Site) -> str:
    return f"{site.call or 'an unknown call'}{f' in {site.marker}' if site.marker else ''}"
