"""Makes the profile of each run of a job from the measures of its ranks.

What needs all ranks happens here and in `critical`: units that all of them have, waiting in collectives.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.compare.critical import CountedRanks, MeasuredRank, Waits, counted_ranks, of_ranks
from rocpd.compare.facts import RankFacts, combined, read_facts
from rocpd.compare.measure import WHOLE, Measuring, RankMeasure, UnitEdges, inside, measure
from rocpd.compare.metrics import MEMORY, DiffMetric
from rocpd.compare.options import STEP, DiffOptions
from rocpd.compare.run_profile import COLLECTIVES, PLURALS, STEPS, WINDOW, RunFacts, RunProfile
from rocpd.errors import RocpdError, UsageError
from rocpd.federate.federation import Federation
from rocpd.federate.select.part import Part
from rocpd.frozen import frozen
from rocpd.read.matching import Clocks
from rocpd.summary.arrivals import arrivals
from rocpd.summary.memory import memory
from rocpd.summary.options import Options
from rocpd.summary.reading import RankReading, Reading
from rocpd.trace.collectives import Group
from rocpd.trace.kernel_categories import load
from rocpd.trace.steps import is_step
from rocpd.types import Floats, Ints, Progress

_WARM = 1.5  # times the median of the rest: leading units that take longer are warm-up
_FEWEST = 8  # collectives to make units of


class _Matched(NamedTuple):
    """The communication of a run: how long kernels of channels wait, and channels that meet."""

    waits: Waits
    groups: Sequence[Group]


@frozen
class MeasuredRun:
    """A run of which everything is read.

    Args:
        name: what people call it.
        unit: what a unit is.
        numbers: of the units that count, without warm-up.
        warm_up: how many units before them are warm-up.
        counted: what its ranks did in these.
        memory: most memory that a rank held, if asked for [bytes].
        facts: what it was.
        guids: of its ranks.
    """

    name: str
    unit: str
    numbers: tuple[int, ...]
    warm_up: int
    counted: CountedRanks
    memory: float | None
    facts: RunFacts
    guids: tuple[str, ...]

    def profile(self, metric: DiffMetric) -> RunProfile:
        """Return what there is to compare of its critical ranks."""
        return self._profile(self.counted, self.numbers, metric, self.counted.times)

    def of_ranks(self, chosen: Container[int]) -> RunProfile:
        """Return what there is to compare of some ranks: their time without waiting.

        Raises:
            UsageError: there is no such rank.
        """
        counted = of_ranks(self.counted, chosen)
        return self._profile(counted, self.numbers, DiffMetric(), counted.own_times)

    def of_units(self, chosen: Container[int], metric: DiffMetric) -> RunProfile:
        """Return what there is to compare of some units.

        Raises:
            UsageError: there is no such unit.
        """
        rows = [row for row, number in enumerate(self.numbers) if number in chosen]
        if self.unit == WINDOW:
            raise UsageError("no steps are marked", "--step-marker REGEX says which markers are steps")
        if not rows:
            known = f"{PLURALS[self.unit]} are {self.numbers[0]} to {self.numbers[-1]}"
            raise UsageError(f"no such {self.unit} in all ranks, or no other", known)
        counted = self.counted.of_units(np.array(rows))
        return self._profile(counted, tuple(self.numbers[row] for row in rows), metric, counted.times)

    def _profile(
        self, counted: CountedRanks, numbers: tuple[int, ...], metric: DiffMetric, times: Floats
    ) -> RunProfile:
        samples = {STEP: tuple(times.tolist())}
        if metric.is_per_unit:
            samples[metric.name] = tuple(counted.highest(metric.values).tolist())
        if self.memory is not None:
            samples[MEMORY] = (self.memory,)
        uses, ranks = tuple(counted.uses()), tuple(counted.ranks())
        return RunProfile(
            self.name,
            self.unit,
            numbers,
            self.warm_up,
            samples,
            counted.scale,
            uses,
            counted.idle(),
            ranks,
            self.facts,
            guids=self.guids,
        )


def measured_runs(
    session: Federation, name: str, options: DiffOptions, metric: DiffMetric, progress: Progress | None = None
) -> list[MeasuredRun]:
    """Read each run of a job; `progress` is called with (ranks read, ranks in all). As `runs_of`."""
    asked = Options(step_marker=options.step_marker, categories=options.categories)
    return runs_of(Reading(session, asked, progress), name, options, metric)


def runs_of(reading: Reading, name: str, options: DiffOptions, metric: DiffMetric) -> list[MeasuredRun]:
    """Read each run of a job.

    Args:
        reading: the job.
        name: what people call it.
        options: what was asked.
        metric: what decides.

    Raises:
        RocpdError: no run has operations.
    """
    how = Measuring(load(options.categories), is_step(options.step_marker), metric.marker)
    measured = dict(_measured(reading, how))
    if not measured:
        where = " in the window" if reading.session.window else ""
        raise RocpdError(f"{name}: no kernels or copies to compare{where}", "`rocpd info` says what is recorded")
    runs = sorted({each.rank.run for each in measured.values()})
    made = []
    for run in runs:
        ranks = [each for each in measured.values() if each.rank.run == run]
        matched = _match(reading.session, ranks)
        unit, given = _units(ranks, matched.groups)
        if given:
            again = dict(_measured(reading, replace(how, given=given)))
            ranks = [again[each.rank.number] for each in ranks]
            matched = _match(reading.session, ranks)
        called = name if len(runs) == 1 else f"{name} (run {run})"
        peak = _peak(reading, ranks) if metric.kind == MEMORY else None
        made.append(_run(called, unit, ranks, matched.waits, options.everything, peak))
    return made


def _measured(reading: Reading, how: Measuring) -> Iterator[tuple[int, MeasuredRank]]:
    for rank, answer in reading.each(partial(_of_rank, how=how)):
        if answer:
            yield rank.number, MeasuredRank(rank, *answer)


def _of_rank(reading: RankReading, how: Measuring) -> tuple[RankMeasure, RankFacts] | None:
    if how.given is not None and reading.rank.number not in how.given:
        return None
    # A window is for units, which count as a whole or not at all: what they consist of is read whatever the window.
    reader = reading.reader.keeping()
    reader = reader.unwindowed() if reading.window.part != Part(None, None) else reader
    measured = measure(replace(reading, reader=reader), how)
    return (measured, read_facts(replace(reading, reader=reader))) if measured else None


def _match(session: Federation, ranks: Sequence[MeasuredRank]) -> _Matched:
    """Match the communication of a run; what belongs to nothing has no waits."""
    channels = [channel for each in ranks for channel in each.measure.channels]
    clocks = Clocks.of(session, channels)
    groups, pairs, _ = clocks.match(channels)
    waits: dict[int, Ints] = {}
    every: list[Group] = [*groups, *((pair.sender, pair.receiver) for pair in pairs)]
    for group in every:
        of_members = arrivals(group, clocks, np.arange(len(group[0]))).waits
        waits |= {id(member): of_member for member, of_member in zip(group, of_members, strict=True)}
    return _Matched(waits, every)


def _units(ranks: Sequence[MeasuredRank], groups: Sequence[Group]) -> tuple[str, dict[int, UnitEdges | None] | None]:
    """Return what the units of a run are, and for ranks to be read again from where to where."""
    common = set.intersection(*(set(each.measure.units.numbers.tolist()) for each in ranks))
    if common and common != {WHOLE}:
        return STEPS, None
    parts = {each.rank.number: each.measure.part for each in ranks}
    everywhere = [group for group in groups if {member.rank for member in group} == parts.keys()]
    intervals = [edges for group in everywhere if (edges := _between(group, parts))]
    if intervals:
        rarest = min(intervals, key=lambda edges: min(len(each.numbers) for each in edges.values()))
        return COLLECTIVES, {**rarest}
    return WINDOW, None if common else dict.fromkeys(parts)


def _between(group: Group, parts: Mapping[int, Part]) -> dict[int, UnitEdges]:
    """Return rank -> the intervals between the ends of collectives in its part of the time; nothing where few are."""
    edges: dict[int, UnitEdges] = {}
    for member in reversed(group):
        ends = np.maximum.accumulate(member.end)
        within = inside(UnitEdges(np.arange(len(ends) - 1), ends, ends[1:]), parts[member.rank])
        if within:
            edges[member.rank] = within
    numbers = [set(each.numbers.tolist()) for each in edges.values()]
    is_enough = len(edges) == len(parts) and len(set.intersection(*numbers)) >= _FEWEST - 1
    return edges if is_enough else {}


def _run(
    name: str, unit: str, ranks: Sequence[MeasuredRank], waits: Waits, everything: bool, peak: float | None
) -> MeasuredRun:
    """Return one run, without warm-up unless everything counts."""
    common = set.intersection(*(set(each.measure.units.numbers.tolist()) for each in ranks))
    numbers = [number for number in ranks[0].measure.units.numbers.tolist() if number in common]
    counted = counted_ranks(ranks, numbers, waits, is_window=unit == WINDOW)
    warm_up = 0 if everything else _warm_up(counted.times.tolist())
    counted = counted.of_units(slice(warm_up, None))
    facts = combined([(each.rank, each.facts) for each in ranks])
    guids = tuple(sorted({each.rank.plain_guid for each in ranks}))
    return MeasuredRun(name, unit, tuple(numbers[warm_up:]), warm_up, counted, peak, facts, guids)


def _warm_up(times: Sequence[float]) -> int:
    """Return how many leading units take longer than 1.5 times the median of those after them."""
    count = 0
    while count < len(times) // 2 and times[count] > _WARM * float(np.median(times[count + 1 :])):
        count += 1
    return count


def _peak(reading: Reading, ranks: Sequence[MeasuredRank]) -> float:
    """Return the memory of the rank with most [bytes]."""
    wanted = {each.rank.number for each in ranks}
    peaks, *_ = memory(reading)
    level, peak, rank = (peaks.columns.index(name) for name in ("level", "peak_bytes", "rank"))
    return max((float(row[peak]) for row in peaks if row[rank] in wanted and row[level] == "REAL"), default=0.0)
