"""Makes the profile of each run of a job from the measures of its ranks.

What needs all ranks happens here: units that all of them have, waiting in collectives, and the critical rank of each
unit. Of the environment only settings of libraries are read, and none whose name or value looks like a secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base.documents import json_object
from rocpd.base.errors import RocpdError, UsageError
from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Floats, Ints, Progress
from rocpd.compare.measure import COPY_KIND, WHOLE, KernelLaunch, Measuring, RankMeasure, UnitEdges, inside, measure
from rocpd.compare.options import MEMORY, STEP, DiffMetric, DiffOptions
from rocpd.compare.run_profile import (
    COLLECTIVES,
    COMPUTE,
    COPIES,
    IDLE,
    PLURALS,
    STEPS,
    TRANSFER,
    UNMATCHED,
    WAITING,
    WINDOW,
    LaunchUse,
    RankUse,
    RunFacts,
    RunProfile,
)
from rocpd.facts.agent_time import CAUSES
from rocpd.facts.columns import as_text, statement
from rocpd.facts.communication.arrivals import arrivals
from rocpd.facts.communication.collectives import Group
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.rank import Options, RankReading
from rocpd.facts.regions import read_regions
from rocpd.facts.units import steps_of_ranks, warm_steps
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.categories import domain_of
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import is_step
from rocpd.summary.memory.memory import memory
from rocpd.summary.reading import RankAnswers, Reading
from rocpd.summary.run import tables_alone

_SETTINGS = re.compile(
    r"(NCCL|RCCL|HSA|HIP|ROCR|ROCM|ROCP|GPU|OMP|KMP|PYTORCH|TORCH|MIOPEN|TENSILE|HIPBLASLT|ROCBLAS|TRITON|XLA|UCX|OMPI_MCA|FI|AMD|DEBUG)_\w+"
)
_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie")
_NUMBERED = re.compile(r"(?i)(gpu[ -]?\d*)?")
_LONGEST = 200  # characters of a value
_GPUS = "SELECT product_name, name, extdata FROM rocpd_info_agent WHERE type = 'GPU'"
_ENVIRONMENT = "SELECT environment FROM rocpd_info_process"
_TABLES = {"kernels": "rocpd_kernel_dispatch", "copies": "rocpd_memory_copy", "allocations": "rocpd_memory_allocate"}
_CALLS = dict.fromkeys(("HIP", "CUDA"), "calls of HIP or CUDA")
"""Domain -> what it is called: those that are the same on another vendor's GPU."""
_ALWAYS = (1, 1 << 62)  # [ns]


class RankFacts(NamedTuple):
    """What a rank was; as `RunFacts`, with the number and the mean of its clock samples."""

    gpus: tuple[str, ...]
    recorded: frozenset[str]
    clock: tuple[int, float]
    environment: Mapping[str, str]


def read_facts(reading: RankReading) -> RankFacts:
    """Read what a rank was."""
    reader = reading.reader
    recorded = {name for name, base in _TABLES.items() if reader.rows(f"SELECT 1 FROM {base} LIMIT 1")}  # noqa: S608
    regions, names = read_regions(reading)
    categories = {names.texts[code] for code in set(regions.category.tolist())}
    recorded |= {_CALLS.get(domain, domain) for domain in map(domain_of, filter(None, categories))}
    ((count, mean),) = reader.rows(statement("clock_samples"), _ALWAYS)
    clock = (int(count or 0), float(mean or 0.0)) if isinstance(mean, (int, float)) else (0, 0.0)
    gpus = {known for row in reader.rows(_GPUS) if (known := _gpu(*row))}
    settings = dict(pair for (text,) in reader.rows(_ENVIRONMENT) for pair in _settings(text))
    return RankFacts(tuple(sorted(gpus)), frozenset(recorded), clock, settings)


def _gpu(product: object, name: object, extdata: object) -> str | None:
    """Return what a GPU is, with its compute units; None where the files know its number alone."""
    units = (json_object(extdata) or {}).get("cu_count") if isinstance(extdata, str) else None
    what = as_text(product) or as_text(name) or ""
    if _NUMBERED.fullmatch(what):
        return None
    return f"{what} ({units} compute units)" if units else what


def _settings(text: object) -> Iterator[tuple[str, str]]:
    """Yield the settings of libraries in an environment."""
    known = json_object(text) if isinstance(text, str) else None
    for name, value in (known or {}).items():
        is_shown = _SETTINGS.fullmatch(name) and not _SECRET.search(f"{name}={value}")
        if is_shown and "/" not in str(value):  # paths differ wherever something is installed
            yield name, str(value)[:_LONGEST]


def combined(ranks: Sequence[tuple[Rank, RankFacts]]) -> RunFacts:
    """Put together the facts of the ranks of a run; of the environment what is the same in all."""
    settings = Counter(pair for _, facts in ranks for pair in facts.environment.items())
    count = sum(facts.clock[0] for _, facts in ranks)
    clock = sum(facts.clock[0] * facts.clock[1] for _, facts in ranks) / count if count else None
    commands = {re.sub(r"\d+", "#", rank.command) for rank, _ in ranks if rank.command}
    return RunFacts(
        len(ranks),
        len({rank.hostname for rank, _ in ranks}),
        tuple(sorted({gpu for _, facts in ranks for gpu in facts.gpus})),
        tuple(sorted({rank.version for rank, _ in ranks})),
        tuple(sorted(frozenset[str].intersection(*(facts.recorded for _, facts in ranks)))),
        clock,
        {name: value for (name, value), times in sorted(settings.items()) if times == len(ranks)},
        tuple(sorted(commands)),
    )


Waits = Mapping[int, Ints]
"""`id` of a channel -> how long each of its kernels waits for the last member [ns]; only of matched channels."""


class MeasuredRank(NamedTuple):
    """A rank with what it did, and what it was."""

    rank: Rank
    measure: RankMeasure
    facts: RankFacts


_CLOSE = 0.99  # of the longest
_OF_KIND = {"compute": COMPUTE, "communication": TRANSFER, COPY_KIND: COPIES}


@frozen
class _Member:
    """A rank of a run, of the units that all ranks have; times are scaled, see `CountedRanks.scale`.

    Args:
        number, host: which it is.
        measure: what it did.
        rows: which of its units are meant.
        calls, time, exposed, waiting, unmatched: `[unit, launch]`; the last two are parts of `exposed`.
        idle: `[unit, cause]`.
        length: time of each unit.
    """

    number: int
    host: str | None
    measure: RankMeasure
    rows: Ints
    calls: Ints
    time: Ints
    exposed: Ints
    waiting: Ints
    unmatched: Ints
    idle: Ints
    length: Ints

    def of_units(self, chosen: Flags | Ints | slice) -> _Member:
        """Return the same with some units only."""
        names = ("rows", "calls", "time", "exposed", "waiting", "unmatched", "idle", "length")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def parts(self) -> dict[str, Ints]:
        """Return the time of each unit by part."""
        parts = dict.fromkeys((COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES), np.zeros(len(self.rows), np.int64))
        for number, launch in enumerate(self.measure.launches):
            for part, time in self.of_launch(number, launch).items():
                parts[part] = parts[part] + time
        return parts | {f"{IDLE}{cause}": self.idle[:, number] for number, cause in enumerate(CAUSES)}

    def of_launch(self, number: int, launch: KernelLaunch) -> dict[str, Ints]:
        """Return the time that a launch adds to each unit, by part."""
        waiting, unmatched = self.waiting[:, number], self.unmatched[:, number]
        own = {_OF_KIND[launch.kind]: self.exposed[:, number] - waiting - unmatched}
        return own if launch.kind != "communication" else {**own, WAITING: waiting, UNMATCHED: unmatched}


@frozen
class CountedRanks:
    """The ranks of a run, and which of them count in each unit.

    Args:
        members: ranks.
        counts: whether a rank counts in a unit, as many in each: `[rank, unit]`.
        scale: by how much sums of those that count are to be divided, for one agent of one of them.
    """

    members: Sequence[_Member]
    counts: Flags
    scale: int

    @property
    def times(self) -> Floats:
        """How long each unit takes [ns]."""
        return self._mean([member.length for member in self.members])

    @property
    def own_times(self) -> Floats:
        """The same without waiting for other ranks, and without communication that may be waiting [ns]."""
        return self._mean([member.length - (member.waiting + member.unmatched).sum(1) for member in self.members])

    def _mean(self, values: Sequence[Ints]) -> Floats:
        mean: Floats = (np.array(values) * self.counts).sum(0) / self.scale
        return mean

    def of_units(self, chosen: Flags | Ints | slice) -> CountedRanks:
        """Return the same with some units only."""
        return CountedRanks([member.of_units(chosen) for member in self.members], self.counts[:, chosen], self.scale)

    def highest(self, values: Callable[[RankMeasure], Ints]) -> Floats:
        """Return the largest value of a rank in each unit, of those that ever count."""
        members = [member for member, counts in zip(self.members, self.counts, strict=True) if counts.any()]
        highest: Floats = np.max([values(member.measure)[member.rows] for member in members], axis=0)
        return highest.astype(np.float64)

    def uses(self) -> Iterator[LaunchUse]:
        """Yield what launches took on the ranks that count."""
        calls, times = Counter[KernelLaunch](), Counter[KernelLaunch]()
        parts, medians = defaultdict[KernelLaunch, Counter[str]](Counter), defaultdict[KernelLaunch, float](float)
        for row, member in enumerate(self.members):
            units = np.flatnonzero(self.counts[row])
            for number, launch in enumerate(member.measure.launches if len(units) else ()):
                called = int(member.calls[units, number].sum())
                calls[launch] += called
                times[launch] += int(member.time[units, number].sum())
                for part, of_part in member.of_launch(number, launch).items():
                    parts[launch][part] += int(of_part[units].sum())
                if called:
                    medians[launch] += float(np.nanmedian(member.measure.medians[member.rows[units], number])) * called
        for launch, called in calls.items():
            if called or any(parts[launch].values()):
                median = medians[launch] / called if called else None
                yield LaunchUse(launch, called, times[launch], dict(parts[launch]), median)

    def idle(self) -> dict[str, int]:
        """Return the idle time of the ranks that count, by part."""
        pairs = zip(self.members, self.counts, strict=True)
        sums = np.sum([member.idle[counts].sum(0) for member, counts in pairs], axis=0).tolist()
        return {f"{IDLE}{cause}": time for cause, time in zip(CAUSES, sums, strict=True) if time}

    def ranks(self) -> Iterator[RankUse]:
        """Yield what each rank did on average, those too that do not count."""
        each = self.scale // int(self.counts[:, 0].sum())
        for row, member in enumerate(self.members):
            parts = {part: float(time.mean()) / each for part, time in member.parts().items()}
            own = float(member.length.mean()) / each - parts[WAITING] - parts[UNMATCHED]
            shown = {part: time for part, time in parts.items() if time}
            yield RankUse(member.number, member.host, own, shown, int(self.counts[row].sum()))


def counted_ranks(
    ranks: Sequence[MeasuredRank], numbers: Sequence[int], waits: Waits, *, is_window: bool
) -> CountedRanks:
    """Find the critical ranks of a run.

    Args:
        ranks: with what they did.
        numbers: the units that count, which all ranks have.
        waits: of their channels.
        is_window: idle time is no part of a unit.
    """
    scale = math.lcm(*(each.measure.agents for each in ranks))
    members = [_member(place, each, numbers, waits, scale) for place, each in enumerate(ranks)]
    if is_window:
        members = [replace(member, length=member.exposed.sum(1), idle=0 * member.idle) for member in members]
    lengths = np.array([member.length for member in members])
    waiting = np.array([member.waiting.sum(1) for member in members])
    is_long = lengths >= _CLOSE * lengths.max(0)
    critical = np.where(is_long, waiting, np.iinfo(np.int64).max).argmin(0)
    return CountedRanks(members, np.arange(len(members))[:, None] == critical, scale)


def of_ranks(counted: CountedRanks, chosen: Container[int]) -> CountedRanks:
    """Return the same where the chosen ranks count, in all units.

    Raises:
        UsageError: none of them is there.
    """
    flags = np.array([member.number in chosen for member in counted.members])
    if not flags.any():
        known = ", ".join(str(member.number) for member in counted.members)
        raise UsageError("no such rank with GPU work, or no other", f"ranks with GPU work: {known}")
    counts = np.broadcast_to(flags[:, None], counted.counts.shape)
    each = counted.scale // int(counted.counts[:, 0].sum())
    return CountedRanks(counted.members, counts, each * int(flags.sum()))


def _member(place: int, each: MeasuredRank, numbers: Sequence[int], waits: Waits, scale: int) -> _Member:
    measure = each.measure
    row = {number: at for at, number in enumerate(measure.units.numbers.tolist())}
    rows = np.array([row[number] for number in numbers])
    times = scale // measure.agents
    waiting, unmatched = _waiting(measure, waits)
    length = np.diff(measure.units.edges) * measure.agents
    columns = (measure.calls, measure.time, measure.exposed, waiting, unmatched, measure.idle, length)
    number = place if each.rank.run else each.rank.number
    return _Member(number, each.rank.hostname, measure, rows, *(column[rows] * times for column in columns))


def _waiting(measure: RankMeasure, waits: Waits) -> tuple[Ints, Ints]:
    """Return the exposed time of each unit and launch in which a rank waits, and that of which nothing is known."""
    waiting, unmatched = np.zeros_like(measure.exposed), np.zeros_like(measure.exposed)
    known = measure.exposed_communication
    for number in range(-1, len(measure.channels)):
        rows = np.flatnonzero(known.channel == number)
        at = known.unit[rows], known.launch[rows]
        start, end = known.start[rows], known.end[rows]
        channel = measure.channels[number] if number >= 0 else None
        if channel is None or id(channel) not in waits:
            np.add.at(unmatched, at, end - start)
            continue
        position = known.position[rows]
        until = channel.start[position] + waits[id(channel)][position]
        np.add.at(waiting, at, np.clip(until, start, end) - start)
    return waiting, unmatched


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


_Measured: TypeAlias = "tuple[RankMeasure, RankFacts] | None"


def measured_runs(
    session: Federation, name: str, options: DiffOptions, metric: DiffMetric, progress: Progress | None = None
) -> list[MeasuredRun]:
    """Read each run of a job; `progress` is called with (ranks read, ranks in all). As `runs_of`."""
    asked = Options(step_marker=options.step_marker, categories=options.categories)
    return runs_of(asked_of(Reading(session, asked, progress), options, metric), name, options, metric)


def asked_of(reading: Reading, options: DiffOptions, metric: DiffMetric) -> RankAnswers[_Measured]:
    """Return what a comparison asks of each rank."""
    return reading.each(partial(_of_rank, how=_how(options, metric)))


def _how(options: DiffOptions, metric: DiffMetric) -> Measuring:
    return Measuring(load(options.categories), is_step(options.step_marker), metric.marker)


def runs_of(answers: RankAnswers[_Measured], name: str, options: DiffOptions, metric: DiffMetric) -> list[MeasuredRun]:
    """Return each run of a job.

    Args:
        answers: what was asked of its ranks.
        name: what people call it.
        options: what was asked.
        metric: what decides.

    Raises:
        RocpdError: no run has operations.
    """
    reading = answers.reading
    measured = dict(_measured(answers))
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
            how = replace(_how(options, metric), given=given)
            again = dict(_measured(reading.each(partial(_of_rank, how=how))))
            ranks = [again[each.rank.number] for each in ranks]
            matched = _match(reading.session, ranks)
        called = name if len(runs) == 1 else f"{name} (run {run})"
        peak = _peak(reading, ranks) if metric.kind == MEMORY else None
        warm = frozenset[int]()
        if unit == STEPS and not options.everything and not reading.session.window:
            of_job = steps_of_ranks(reading.session, options.step_marker)
            warm = warm_steps([of_job[each.rank.number] for each in ranks])
        made.append(_run(called, unit, ranks, matched.waits, warm, peak))
    return made


def _measured(answers: RankAnswers[_Measured]) -> Iterator[tuple[int, MeasuredRank]]:
    for rank, answer in answers:
        if answer:
            yield rank.number, MeasuredRank(rank, *answer)


def _of_rank(reading: RankReading, how: Measuring) -> _Measured:
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
    name: str, unit: str, ranks: Sequence[MeasuredRank], waits: Waits, warm: frozenset[int], peak: float | None
) -> MeasuredRun:
    """Return one run, without the units that are warm-up."""
    common = set.intersection(*(set(each.measure.units.numbers.tolist()) for each in ranks))
    numbers = [number for number in ranks[0].measure.units.numbers.tolist() if number in common]
    counted = counted_ranks(ranks, numbers, waits, is_window=unit == WINDOW)
    warm_up = sum(number in warm for number in numbers)
    counted = counted.of_units(np.array([number not in warm for number in numbers]))
    facts = combined([(each.rank, each.facts) for each in ranks])
    guids = tuple(sorted({each.rank.plain_guid for each in ranks}))
    steady = tuple(number for number in numbers if number not in warm)
    return MeasuredRun(name, unit, steady, warm_up, counted, peak, facts, guids)


def _peak(reading: Reading, ranks: Sequence[MeasuredRank]) -> float:
    """Return the memory of the rank with most [bytes]."""
    wanted = {each.rank.number for each in ranks}
    peaks, *_ = tables_alone(memory(reading))
    level, peak, rank = (peaks.columns.index(name) for name in ("level", "peak_bytes", "rank"))
    return max((float(row[peak]) for row in peaks if row[rank] in wanted and row[level] == "REAL"), default=0.0)
