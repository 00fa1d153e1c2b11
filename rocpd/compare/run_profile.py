"""One run in the form for comparisons: its units of time, their parts, kernels, ranks and facts.

A profile is small, whatever the size of the trace: a file can keep it, see `baseline`. It is made of the measures of
ranks; steps that need all of these are done here: the units that all ranks have, waiting in collectives, and the
critical rank of each unit. Of the environment only settings of libraries are read, and none whose name or value looks
like a secret.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import Flags, Floats, Ints, Progress, RocpdError, UsageError, amount, by_key, frozen
from rocpd.base.stages import Stage
from rocpd.base.texts import json_object
from rocpd.compare.calls import CallUse, Function, mean_calls
from rocpd.compare.measure import (
    COPY_KIND,
    WHOLE,
    KernelLaunch,
    Measuring,
    RankMeasure,
    UnitEdges,
    inside,
    measure,
)
from rocpd.compare.options import ENERGY, MEMORY, STEP, DiffMetric, DiffOptions
from rocpd.compare.problems import Answered, problems_of
from rocpd.facts.agent_time import CAUSES
from rocpd.facts.columns import as_text, distinct, statement
from rocpd.facts.communication.collectives import Group
from rocpd.facts.communication.exposed import ExposedPieces, Waits, waited, waits_of
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.rank import Options, RankReading
from rocpd.facts.regions import read_regions
from rocpd.facts.units import steps_of_ranks, warm_steps
from rocpd.federate.describe import ROCM
from rocpd.federate.federation import Federation, OnNote
from rocpd.federate.open.identify import Rank
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.categories import domain_of
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import is_step
from rocpd.summary.counters.samples import samples
from rocpd.summary.grouping import Sums, merge
from rocpd.summary.memory.memory import memory
from rocpd.summary.reading import RankAnswers, Reading, tables_alone

COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES = (
    "compute",
    "exposed communication: transfer",
    "exposed communication: waiting",
    "exposed communication: not matched",
    "exposed copies",
)

COMMUNICATION = (TRANSFER, WAITING, UNMATCHED)
"""The parts that are exposed communication."""

IDLE = "idle: "
"""Prefix of the causes of idle time."""

PARTS = (COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES, *(f"{IDLE}{cause}" for cause in CAUSES))
"""The parts of the time of a unit, in the order in which they are shown."""

STEPS, COLLECTIVES, WINDOW = "step", "interval between collectives", "window"
"""Kinds of units: of the window, which is all the time that counts, only the time in which GPUs work is compared."""

PLURALS = {STEPS: "steps", COLLECTIVES: "intervals between collectives", WINDOW: "windows"}
"""Kind of unit -> its plural."""


class CallLengths(NamedTuple):
    """The duration of a call of one kind of launch, as the median of a rank's medians in units.

    Args:
        ranks: number of ranks with such calls.
        quickest: duration on the rank where it is shortest [ns].
        usual: median of these ranks [ns].
    """

    ranks: int
    quickest: float
    usual: float


@frozen
class LaunchUse:
    """The time of a kind of launch on the critical rank, in all units; scaled numbers, see `RunProfile.scale`.

    Args:
        launch: the kind of launch.
        calls: number of calls.
        time: sum of durations [ns].
        exposed: time by part [ns].
        median: duration of a call, as the median of the medians of units; the mean of the ranks by their calls [ns];
            None: no call starts in the units.
        lengths: duration of a call on all ranks; None: it does not compute, or the baseline is of an older version.
    """

    launch: KernelLaunch
    calls: int
    time: int
    exposed: Mapping[str, int]
    median: float | None
    lengths: CallLengths | None = None


@frozen
class RankUse:
    """The time of a rank per unit, on average of all units [ns].

    Args:
        rank: its number in the run.
        host: its host.
        works: its time without exposed communication; None in baselines of older versions, which have another time.
        critical: number of units in which it is the critical rank, or counts as such; 0 in baselines of older versions.
    """

    rank: int
    host: str | None
    works: float | None
    critical: int = 0


@frozen
class RunFacts:
    """Facts of a run that matter for whether two runs compare.

    Args:
        ranks, hosts: numbers of ranks and hosts.
        gpus: product, and compute units, of the GPUs, without unknown ones.
        versions: versions of the schema.
        recorded: kinds of recorded events.
        clock_mhz: mean of the samples of the clocks of GPUs; None without any.
        environment: settings of libraries that all ranks share.
        commands: commands of the processes, with # for the numbers in which they differ.
        rocm: versions of loaded libraries, as far as the environment shows them.
        started: start of its units, by clocks that count the time of day [ns since 1970]; None: there are none.
        left_out: number of ranks of the job that filters leave out.
    """

    ranks: int = 0
    hosts: int = 0
    gpus: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    clock_mhz: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    rocm: tuple[str, ...] = ()
    started: int | None = None
    left_out: int = 0


@frozen
class RunProfile:
    """The profile of a run.

    Args:
        name: where it was read from.
        unit: kind of its units.
        numbers: numbers of the units.
        warm_up: number of warm-up units before them.
        samples: metric -> its value in each unit: `step` has the time of the critical rank [ns].
        scale: factor on calls, times of launches and idle time, which makes shares of agents whole numbers.
        uses: launches, in the order of their first one.
        idle: idle time of the critical rank by part, in all units [ns].
        ranks: its ranks.
        facts: facts of the run.
        selection: the part of it that counts, in words; empty: all of it.
        guids: GUIDs of its ranks with GPU work, in alphabetical order; empty: not known to baselines of older versions.
        problems: problems that analyses find in the whole run.
        calls: calls of the host on average of its ranks; empty: none recorded, or a baseline of an older version.
        numbers_of_calls: kernel that computes -> its calls in a unit, on average of the ranks that call it.
        communication: time of communication of a rank in a unit, and the hidden part of it, on average [ns].
    """

    name: str
    unit: str
    numbers: tuple[int, ...]
    warm_up: int
    samples: Mapping[str, tuple[float, ...]]
    scale: int
    uses: tuple[LaunchUse, ...]
    idle: Mapping[str, int]
    ranks: tuple[RankUse, ...]
    facts: RunFacts
    selection: str = ""
    guids: tuple[str, ...] = ()
    problems: Answered = field(default_factory=dict)
    calls: tuple[CallUse, ...] = ()
    numbers_of_calls: Mapping[str, float] = field(default_factory=dict)
    communication: tuple[float, float] = (0.0, 0.0)

    @property
    def units(self) -> int:
        """The number of its units."""
        return len(self.numbers)


Runs: TypeAlias = Sequence[RunProfile]
"""The runs of one side of a comparison."""


def without_repeated(runs: Runs, on_note: OnNote) -> list[RunProfile]:
    """Return each run of a side once; `on_note` is called with a line on each that is left out.

    Runs with a rank in common are one, whatever part of it each holds: the whole, a window, some ranks. Of these, the
    one with most ranks counts, then with most units, then the first. Runs of baselines without GUIDs are all different.
    Different rows do not make a second run, as they make a second rank elsewhere: the variation from run to run, which
    only several runs show, is the same in both.
    """
    counted: list[RunProfile] = []
    for run in sorted(runs, key=lambda run: (-len(run.guids), -run.units)):
        other = next((other for other in counted if not set(run.guids).isdisjoint(other.guids)), None)
        if other:
            on_note(_left_out(run, other))
        else:
            counted.append(run)
    return [run for run in runs if any(run is each for each in counted)]


def _left_out(run: RunProfile, other: RunProfile) -> str:
    common = len(set(run.guids).intersection(other.guids))
    if common < len(run.guids):
        ranks = amount(len(run.guids), "rank")
        return f"{run.name}: left out, {other.name} has {common} of its {ranks}, and a run counts once"
    where = "there more than once" if run.name == other.name else f"also in {other.name}"
    return f"{run.name}: the run counts once, it is {where}"


def on_both_sides(base: Runs, new: Runs) -> Iterator[str]:
    """Yield the names of runs that both sides have, with the same times; different parts of a run can be compared."""
    for run in base:
        for other in new:
            if run.guids and run.guids == other.guids and run.samples[STEP] == other.samples[STEP]:
                yield run.name if run.name == other.name else f"{run.name} (on the other side {other.name})"


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
"""Domain -> its name here: domains that correspond on another vendor's GPU have one name."""
_ALWAYS = (1, 1 << 62)  # [ns]


class RankFacts(NamedTuple):
    """Facts of a rank, as in `RunFacts`; `clock`: number and mean of its clock samples."""

    gpus: tuple[str, ...]
    recorded: frozenset[str]
    clock: tuple[int, float]
    environment: Mapping[str, str]
    rocm: frozenset[str]


def read_facts(reading: RankReading) -> RankFacts:
    """Read the facts of a rank."""
    reader = reading.reader
    recorded = {name for name, base in _TABLES.items() if reader.rows(f"SELECT 1 FROM {base} LIMIT 1")}  # noqa: S608
    regions, names = read_regions(reading)
    categories = {names.texts[code] for code in distinct(regions.category).tolist()}
    recorded |= {_CALLS.get(domain, domain) for domain in map(domain_of, filter(None, categories))}
    ((count, mean),) = reader.rows(statement("clock_samples"), _ALWAYS)
    clock = (int(count or 0), float(mean or 0.0)) if isinstance(mean, (int, float)) else (0, 0.0)
    gpus = {known for row in reader.rows(_GPUS) if (known := _gpu(*row))}
    environments = [text for (text,) in reader.rows(_ENVIRONMENT)]
    settings = dict(pair for text in environments for pair in _settings(text))
    rocm = frozenset(version for text in environments for version in ROCM.findall(str(text)))
    return RankFacts(tuple(sorted(gpus)), frozenset(recorded), clock, settings, rocm)


def _gpu(product: object, name: object, extdata: object) -> str | None:
    """Return the name of a GPU with its compute units; None if the files have only its number."""
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


NUMBER = re.compile(r"\d+|#")
"""A number of a command line, or the sign that stands for one."""


def masked(commands: Iterable[str]) -> tuple[str, ...]:
    """Return the different commands, with # for the numbers in which they differ, such as ranks, runs, or ports.

    >>> masked(["train --rank 0 --batch 2", "train --rank 1 --batch 2"])
    ('train --rank # --batch 2',)
    """
    by_form = by_key((NUMBER.sub("#", command), NUMBER.findall(command)) for command in commands)
    texts = []
    for form, numbers in by_form.items():
        same = iter([column[0] if len(set(column)) == 1 else "#" for column in zip(*numbers, strict=True)])
        texts.append(NUMBER.sub(lambda _, same=same: next(same), form))  # type: ignore[misc]
    return tuple(sorted(texts))


def combined(ranks: Sequence[tuple[Rank, RankFacts]]) -> RunFacts:
    """Return the facts of a run from those of its ranks; the environment has only settings that all share."""
    settings = Counter(pair for _, facts in ranks for pair in facts.environment.items())
    count = sum(facts.clock[0] for _, facts in ranks)
    clock = sum(facts.clock[0] * facts.clock[1] for _, facts in ranks) / count if count else None
    return RunFacts(
        len(ranks),
        len({rank.hostname for rank, _ in ranks}),
        tuple(sorted({gpu for _, facts in ranks for gpu in facts.gpus})),
        tuple(sorted({rank.version for rank, _ in ranks})),
        tuple(sorted(frozenset[str].intersection(*(facts.recorded for _, facts in ranks)))),
        clock,
        {name: value for (name, value), times in sorted(settings.items()) if times == len(ranks)},
        masked(rank.command for rank, _ in ranks if rank.command),
        tuple(sorted({version for _, facts in ranks for version in facts.rocm})),
    )


class MeasuredRank(NamedTuple):
    """A rank with its measure and its facts."""

    rank: Rank
    measure: RankMeasure
    facts: RankFacts


_CLOSE = 0.99  # share of the longest time from which on a rank takes as long
_OF_KIND = {"compute": COMPUTE, "communication": TRANSFER, COPY_KIND: COPIES}


@frozen
class _Member:
    """A rank of a run, in the units that count; times other than medians and values are scaled, see `RunProfile.scale`.

    Args:
        number, host: number and host of the rank.
        launches: kernels and copies.
        calls, time, exposed, medians, waiting, unmatched: `[unit, launch]`; the last two are parts of `exposed`.
        idle: `[unit, cause]`.
        length: time of each unit.
        values: value of the metric in each unit; the time of launches if units have no value of it.
        functions, called: calls of the host, as `read_calls` returns them.
    """

    number: int
    host: str | None
    launches: Sequence[KernelLaunch]
    calls: Ints
    time: Ints
    exposed: Ints
    medians: Floats
    waiting: Ints
    unmatched: Ints
    idle: Ints
    length: Ints
    values: Ints
    functions: Sequence[Function]
    called: Ints

    @property
    def works(self) -> Ints:
        """Time of each unit without exposed communication: a rank that computes less hides less of it, and waits."""
        talks = [launch.kind == "communication" for launch in self.launches]
        works: Ints = self.length - self.exposed[:, talks].sum(1)
        return works

    def of_units(self, chosen: Sequence[int] | Ints) -> _Member:
        """Return the rank with some units only."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _OF_UNITS})


_OF_UNITS = ("calls", "time", "exposed", "medians", "waiting", "unmatched", "idle", "length", "values", "called")


@frozen
class MeasuredRun:
    """A run with all measures of its ranks.

    Args:
        about: its profile, without the parts of its units.
        members: its ranks.
        counts: whether a rank counts in a unit, equally many ranks in each unit: `[rank, unit]`.
        metric: the metric that decides.
        memory: most memory that a rank held, if asked for [bytes].
        power: mean power of a GPU, if asked for and sampled [W].
    """

    about: RunProfile
    members: Sequence[_Member]
    counts: Flags
    metric: DiffMetric
    memory: float | None
    power: float | None

    def profile(self) -> RunProfile:
        """Return the profile of its critical ranks."""
        return self._profile([member.length for member in self.members])

    def of_ranks(self, chosen: Container[int]) -> RunProfile:
        """Return the profile of some ranks in all units: their time without communication.

        Raises:
            UsageError: there are no such ranks.
        """
        flags = np.array([member.number in chosen for member in self.members])
        if not flags.any():
            known = ", ".join(str(member.number) for member in self.members)
            raise UsageError("no such rank with GPU work, or no other", f"ranks with GPU work: {known}")
        counts = np.broadcast_to(flags[:, None], self.counts.shape)
        about = replace(self.about, scale=self.about.scale * int(flags.sum()))
        return replace(self, about=about, counts=counts)._profile([member.works for member in self.members])

    def of_units(self, chosen: Container[int]) -> RunProfile:
        """Return the profile of some units.

        Raises:
            UsageError: there are no such units.
        """
        unit, numbers = self.about.unit, self.about.numbers
        rows = [row for row, number in enumerate(numbers) if number in chosen]
        if unit == WINDOW:
            raise UsageError("no steps are marked", "--step-marker REGEX says which markers are steps")
        if not rows:
            known = f"{PLURALS[unit]} are {numbers[0]} to {numbers[-1]}"
            raise UsageError(f"no such {unit} in all ranks, or no other", known)
        problems = {
            rule: {about: f"{text}; looked for in all {PLURALS[unit]}" for about, text in some.items()}
            for rule, some in self.about.problems.items()
        }
        about = replace(self.about, numbers=tuple(numbers[row] for row in rows), problems=problems)
        members = [member.of_units(rows) for member in self.members]
        return replace(self, about=about, members=members, counts=self.counts[:, rows]).profile()

    def _profile(self, lengths: Sequence[Ints]) -> RunProfile:
        """Return the profile; `lengths`: time of each unit of each rank."""
        samples = {STEP: tuple(((np.array(lengths) * self.counts).sum(0) / self.about.scale).tolist())}
        if self.metric.is_per_unit:
            ever = [member.values for member, counts in zip(self.members, self.counts, strict=True) if counts.any()]
            samples[self.metric.name] = tuple(map(float, np.max(ever, axis=0)))
        if self.memory is not None:
            samples[MEMORY] = (self.memory,)
        if self.power is not None:
            samples[ENERGY] = tuple(self.power * time / 1e9 for time in samples[STEP])
        uses, ranks = tuple(self._uses()), tuple(self._ranks())
        calls = mean_calls((member.functions, member.called) for member in self.members)
        about = replace(self.about, numbers_of_calls=self._numbers(), communication=self._communication())
        return replace(about, samples=samples, uses=uses, idle=self._idle(), ranks=ranks, calls=calls)

    def _uses(self) -> Iterator[LaunchUse]:
        """Yield the use of launches on the ranks that count."""
        sums: dict[KernelLaunch, Sums] = {}
        for member, counts in zip(self.members, self.counts, strict=True):
            some = member.of_units(np.flatnonzero(counts))
            columns = (some.calls, some.time, some.exposed, some.waiting, some.unmatched)
            of_launches = zip(some.launches, *(column.sum(0).tolist() for column in columns), strict=True)
            for number, (launch, called, *times) in enumerate(of_launches if counts.any() else ()):
                median = float(np.nanmedian(some.medians[:, number])) if called else 0.0
                merge(sums, {launch: Sums((called, *times, median * called))})
        lengths = self._lengths()
        for launch, (called, time, exposed, waiting, unmatched, medians) in sums.items():
            parts = {_OF_KIND[launch.kind]: exposed - waiting - unmatched}
            parts |= {WAITING: waiting, UNMATCHED: unmatched} if launch.kind == "communication" else {}
            if called or any(parts.values()):
                yield LaunchUse(launch, called, time, parts, medians / called if called else None, lengths.get(launch))

    def _lengths(self) -> dict[KernelLaunch, CallLengths]:
        """Return the durations of calls of computing kernels on all ranks, including those that do not count."""
        lengths = defaultdict[KernelLaunch, list[float]](list)
        for member in self.members:
            computes = np.array([launch.kind == "compute" for launch in member.launches], bool)
            called = member.calls.any(0) & computes
            usual = np.nanmedian(member.medians[:, called], axis=0).tolist()
            for number, length in zip(np.flatnonzero(called).tolist(), usual, strict=True):
                lengths[member.launches[number]].append(length)
        return {launch: CallLengths(len(some), min(some), statistics.median(some)) for launch, some in lengths.items()}

    def _numbers(self) -> dict[str, float]:
        """Return kernel that computes -> its calls in a unit, on average of the ranks that call it."""
        calls, ranks = Counter[str](), Counter[str]()
        for member in self.members:
            of_rank = Counter[str]()
            for launch, called in zip(member.launches, member.calls.sum(0).tolist(), strict=True):
                of_rank[launch.name] += called * (launch.kind == "compute")
            calls += of_rank
            ranks.update(name for name, called in of_rank.items() if called)
        return {name: called / ranks[name] / self.about.scale / self.about.units for name, called in calls.items()}

    def _communication(self) -> tuple[float, float]:
        """Return the communication time of a rank in a unit, and the hidden part of it, on average of all [ns]."""
        sums = np.zeros(2)
        for member in self.members:
            talks = [launch.kind == "communication" for launch in member.launches]
            every, exposed = (int(column[:, talks].sum()) for column in (member.time, member.exposed))
            sums += (every, every - exposed)
        every, hidden = (sums / len(self.members) / self.about.scale / self.about.units).tolist()
        return every, hidden

    def _idle(self) -> dict[str, int]:
        """Return the idle time of the ranks that count, by part."""
        pairs = zip(self.members, self.counts, strict=True)
        sums = np.sum([member.idle[counts].sum(0) for member, counts in pairs], axis=0).tolist()
        return {f"{IDLE}{cause}": time for cause, time in zip(CAUSES, sums, strict=True) if time}

    def _ranks(self) -> Iterator[RankUse]:
        """Yield the mean use of each rank, including those that do not count."""
        each = self.about.scale // int(self.counts[:, 0].sum())
        for member, critical in zip(self.members, self.counts.sum(1).tolist(), strict=True):
            yield RankUse(member.number, member.host, float(member.works.mean()) / each, critical)


def _member(each: MeasuredRank, place: int, about: RunProfile, waits: Waits, metric: DiffMetric) -> _Member:
    measure = each.measure
    row = {number: at for at, number in enumerate(measure.units.numbers.tolist())}
    rows = np.array([row[number] for number in about.numbers], np.int64)
    length, idle = np.diff(measure.units.edges) * measure.agents, measure.idle
    if about.unit == WINDOW:  # idle time does not count in a window
        length, idle = measure.exposed.sum(1), 0 * idle
    times = about.scale // measure.agents
    columns = (measure.calls, measure.time, measure.exposed, *_waiting(measure, waits))
    calls, time, exposed, waiting, unmatched = (column[rows] * times for column in columns)
    who = place if each.rank.run else each.rank.number, each.rank.hostname, measure.launches
    units = idle[rows] * times, length[rows] * times, metric.values(measure)[rows]
    host = measure.functions, measure.called[rows]
    return _Member(*who, calls, time, exposed, measure.medians[rows], waiting, unmatched, *units, *host)


def _waiting(measure: RankMeasure, waits: Waits) -> tuple[Ints, Ints]:
    """Return the exposed waiting time of a rank by unit and launch, and the exposed time that is not matched."""
    unit, launch, *pieces = measure.exposed_communication
    waiting, unmatched = np.zeros_like(measure.exposed), np.zeros_like(measure.exposed)
    times = waited(ExposedPieces(*pieces), measure.channels, waits)
    for column, of_pieces in zip((waiting, unmatched), times, strict=True):
        np.add.at(column, (unit, launch), of_pieces)
    return waiting, unmatched


_FEWEST = 8  # collectives that it takes to make units of them
_STAGES = {Stage.FIRST: 1, Stage.READING: 8}  # two analyses, and measuring, which takes as long as six

_Measured: TypeAlias = "tuple[RankMeasure, RankFacts] | None"


def measured_runs(
    session: Federation, name: str, options: DiffOptions, progress: Progress | None = None
) -> list[MeasuredRun]:
    """Read each run of a job; `progress` is called with (time that passed, expected time of all) [ms]. As `runs_of`."""
    every = options.everything
    asked = Options(step_marker=options.step_marker, categories=options.categories, everything=every)
    reading = Reading(session, asked)
    with session.job.reporting(progress, _STAGES):
        answers = asked_of(reading, options)
        problems = problems_of(reading, answers.beside) if options.decides.kind == STEP and session.runs == 1 else {}
        runs = runs_of(answers, name, options)
    return [replace(run, about=replace(run.about, problems=problems)) for run in runs]


def asked_of(
    reading: Reading, options: DiffOptions, given: Mapping[int, UnitEdges | None] | None = None
) -> RankAnswers[_Measured]:
    """Return the answers of ranks for a comparison; `given` as in `Measuring`."""
    step = is_step(options.step_marker)
    how = Measuring(load(options.categories), step, reading.times(), options.decides.marker, given)
    return reading.each(partial(_of_rank, how=how))


def runs_of(answers: RankAnswers[_Measured], name: str, options: DiffOptions) -> list[MeasuredRun]:
    """Return each run of a job.

    Args:
        answers: the answers of its ranks.
        name: name of the job for people.
        options: the options.

    Raises:
        RocpdError: no run has operations.
    """
    reading, metric = answers.reading, options.decides
    measured = _measured(answers)
    runs = sorted({each.rank.run for each in measured.values()})
    made = []
    for run in runs:
        ranks = [each for each in measured.values() if each.rank.run == run]
        waits, groups = _match(reading.session, ranks)
        unit, given = _units(ranks, groups)
        if given:
            again = _measured(asked_of(reading, options, given))
            for each in ranks:
                if each.rank.number not in again:
                    reading.session.note(f"rank {each.rank.number}: not compared: nothing in the time that counts")
            ranks = [again[each.rank.number] for each in ranks if each.rank.number in again]
            waits, _ = _match(reading.session, ranks)
        if not ranks:
            continue
        warm = frozenset[int]()
        if unit == STEPS and not options.everything and not reading.session.window:
            of_job = steps_of_ranks(reading.session, options.step_marker)
            warm = warm_steps([of_job[each.rank.number] for each in ranks])
        about = _about(name if len(runs) == 1 else f"{name} (run {run})", unit, ranks, warm)
        about = replace(about, facts=replace(about.facts, left_out=reading.session.job.left_out))
        members = [_member(each, place, about, waits, metric) for place, each in enumerate(ranks)]
        peak = _peak(reading, ranks) if metric.kind == MEMORY else None
        if options.has_whole and peak is None:
            with suppress(RocpdError):  # no allocations
                peak = _peak(reading, ranks)
        power = _power(reading, ranks) if options.has_whole else None
        made.append(MeasuredRun(about, members, _critical(members), metric, peak, power))
    if not made:
        where = " in the window" if reading.session.window else ""
        raise RocpdError(f"{name}: no kernels or copies to compare{where}", "`rocpd info` says what is recorded")
    return made


def _measured(answers: RankAnswers[_Measured]) -> dict[int, MeasuredRank]:
    return {rank.number: MeasuredRank(rank, *answer) for rank, answer in answers if answer}


def _of_rank(reading: RankReading, how: Measuring) -> _Measured:
    if how.given is not None and reading.rank.number not in how.given:
        return None
    # A window selects whole units: their content is read whatever the window.
    if reading.window.part != Part(None, None):
        reading = replace(reading, reader=reading.reader.unwindowed())
    measured = measure(reading, how)
    return (measured, read_facts(reading)) if measured else None


def _match(session: Federation, ranks: Sequence[MeasuredRank]) -> tuple[Waits, Sequence[Group]]:
    """Match the communication of a run; return the waits of kernels, and the channels that meet."""
    channels = [channel for each in ranks for channel in each.measure.channels]
    clocks = Clocks.of(session, channels)
    groups, pairs, _ = clocks.match(channels)
    every: list[Group] = [*groups, *((pair.sender, pair.receiver) for pair in pairs)]
    return waits_of(groups, pairs, clocks), every


def _units(ranks: Sequence[MeasuredRank], groups: Sequence[Group]) -> tuple[str, dict[int, UnitEdges | None] | None]:
    """Return the kind of the units of a run; and rank -> edges of its units, if ranks have to be read again by them."""
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
    """Return rank -> the intervals between collectives in its part of the time; empty if there are too few."""
    edges: dict[int, UnitEdges] = {}
    for member in reversed(group):
        ends = np.maximum.accumulate(member.end)
        if within := inside(UnitEdges(np.arange(len(ends) - 1), ends, ends[1:]), parts[member.rank]):
            edges[member.rank] = within
    numbers = [set(each.numbers.tolist()) for each in edges.values()]
    is_enough = len(edges) == len(parts) and len(set.intersection(*numbers)) >= _FEWEST - 1
    return edges if is_enough else {}


def _about(name: str, unit: str, ranks: Sequence[MeasuredRank], warm: frozenset[int]) -> RunProfile:
    """Return the profile of a run without warm-up units, and without the parts of its units."""
    common = set.intersection(*(set(each.measure.units.numbers.tolist()) for each in ranks))
    every = [number for number in ranks[0].measure.units.numbers.tolist() if number in common]
    numbers = tuple(number for number in every if number not in warm)
    scale = math.lcm(*(each.measure.agents for each in ranks))
    dated = [int(each.measure.units.edges[0]) for each in ranks if each.rank.has_date]
    facts = replace(combined([(each.rank, each.facts) for each in ranks]), started=min(dated, default=None))
    guids = tuple(sorted({each.rank.plain_guid for each in ranks}))
    return RunProfile(name, unit, numbers, len(every) - len(numbers), {}, scale, (), {}, (), facts, guids=guids)


def _critical(members: Sequence[_Member]) -> Flags:
    """Return whether a rank is the critical one of a unit: among those that take longest, the one that waits least."""
    lengths = np.array([member.length for member in members])
    waiting = np.array([member.waiting.sum(1) for member in members])
    critical = np.where(lengths >= _CLOSE * lengths.max(0), waiting, np.iinfo(np.int64).max).argmin(0)
    is_critical: Flags = np.arange(len(members))[:, None] == critical
    return is_critical


def _peak(reading: Reading, ranks: Sequence[MeasuredRank]) -> float:
    """Return the memory held by the rank with most [bytes]."""
    wanted = {each.rank.number for each in ranks}
    peaks, *_ = tables_alone(memory(reading))
    level, peak, rank = (peaks.columns.index(name) for name in ("level", "peak_bytes", "rank"))
    return max((float(row[peak]) for row in peaks if row[rank] in wanted and row[level] == "REAL"), default=0.0)


def _power(reading: Reading, ranks: Sequence[MeasuredRank]) -> float | None:
    """Return the mean power over the GPUs that ranks sampled [W]; None if none was sampled.

    A GPU that several ranks sample counts once for each, which hardly changes the mean; of several values of a GPU,
    such as those of its parts, the largest counts.
    """
    wanted = {each.rank.number for each in ranks}
    most: dict[tuple[object, object], float] = {}
    with suppress(RocpdError):  # no samples
        sampled, *_ = tables_alone(samples(reading))
        rank, agent, units, mean = map(sampled.columns.index, ("rank", "agent", "units", "mean_over_time"))
        for row in sampled:
            if row[rank] in wanted and row[units] == "W" and row[mean] is not None:
                most[row[rank], row[agent]] = max(float(row[mean]), most.get((row[rank], row[agent]), 0.0))
    return sum(most.values()) / len(most) if most else None
