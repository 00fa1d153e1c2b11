"""Comparison of ranks: totals and their balance, collectives, steps, and a table of rank × time.

With a division by steps or marker ranges, a collective belongs to the place where its first counted member launched it.
Its members are compared as ranks; collectives of start-up are listed, but nobody is blamed for them.

Steps by their marker: their durations, the spread of these, and why the slowest steps take longer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import NamedTuple, cast

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, RocpdError, Row, frozen
from rocpd.facts.agent_time import read_agent_times
from rocpd.facts.columns import distinct
from rocpd.facts.communication.collectives import Channel, Group, listed
from rocpd.facts.communication.exposed import ExposedPieces
from rocpd.facts.communication.meetings import tell_meetings
from rocpd.facts.communication.members import OF_CHANNELS, channels_of
from rocpd.facts.operations import COPY, KERNEL, OperationNames, Ops, kinds_of, read_ops, rows_within
from rocpd.facts.places import launched_in, read_origins
from rocpd.facts.rank import GROUPS, LANES, LAUNCHES, By, Key, RankReading, key_of
from rocpd.facts.regions import RankSteps, steps_of
from rocpd.facts.short_names import kernel_name
from rocpd.facts.spread import Spread, total
from rocpd.facts.timeline import COMMUNICATION, HIDES_COMMUNICATION, IDLE, KINDS, busy_pieces, covered
from rocpd.facts.units import Times, read_first
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact
from rocpd.federate.select.align import UNSHIFTED, Shift
from rocpd.replay.causes import OF_COMPUTE, OF_COPIES, OF_HOST, OF_LINKS, Cause
from rocpd.replay.graph import read_graph
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.steps import is_step
from rocpd.summary.communication import collectives
from rocpd.summary.communication.collectives import (
    MatchedCommunication,
    RankCommunication,
    communication_of,
    first_judged,
    who,
)
from rocpd.summary.communication.exposed import TABLES as EXPOSED
from rocpd.summary.communication.verdict import Judgement
from rocpd.summary.communication.waiting import Waiting
from rocpd.summary.findings import Finding
from rocpd.summary.grouping import Sums, Total, in_order, merge, order_of, ratio
from rocpd.summary.reading import DIVISIONS, STATISTICS, Reading, Tables, statistics
from rocpd.summary.result import Field, Picture, Summary, by_name, table_of
from rocpd.summary.time.gpu_time import PartTimes
from rocpd.table.human import readable

IN_IDLE = "idle"
_GROWN = {OF_COMPUTE: KINDS[0], OF_LINKS: KINDS[1], OF_COPIES: KINDS[2], OF_HOST: IN_IDLE}
PARTS = {KINDS[0]: "compute", KINDS[1]: "transfers", KINDS[2]: "copies", IN_IDLE: "host"}
"""Parts that grow in a step -> words for them in a sentence."""

_CLEARLY = 0.01  # share by which a time is clearly longer


def how_grown(grew: str, by: float, name: str | None) -> str:
    """Return the growth in a slow step in words: the part, the time [ns], and the main kernel or host work, if any.

    >>> how_grown("idle", 1e6, "hipMalloc"), how_grown("compute", 1e6, None)
    ('host 1.00 ms longer, most in hipMalloc', 'compute 1.00 ms longer, all kernels alike')
    """
    kernels_alike = ", all kernels alike" if grew == KINDS[0] else ""
    shown = name if name is None or grew == IN_IDLE else kernel_name(name).short
    return f"{PARTS[grew]} {readable(by, 'ns')} longer{f', most in {shown}' if shown else kernels_alike}"


def pause_after(step: str, pause: float, usual: float) -> str:
    """Return the pause after a step [ns] in words, compared with the usual length of a step.

    >>> pause_after("step 6", 3e6, 1e6)
    '3.00 ms pass between step 6 and the next one: 3.00 times the median step'
    """
    return f"{readable(pause, 'ns')} pass between {step} and the next one: {pause / usual:.2f} times the median step"


@dataclass
class Phase:
    """Markers whose texts differ only in numbers; ranks are added in place, as copying sums would be quadratic.

    Args:
        spreads: spread of their durations on each rank [ns].
        totals: sum of the durations by division.
        gpu: time of the operations launched in them [ns].
    """

    spreads: list[Spread] = field(default_factory=list)
    totals: Counter[Key] = field(default_factory=Counter)
    gpu: int = 0


@dataclass
class Steps:
    """Times of steps and phases by rank or host; on a host, a step takes as long as on its slowest rank.

    Args:
        by: the compared division.
        warm: numbers of the steps that are warm-up.
        uneven: ranks whose clock may have been set between steps: the time there is not known.
        steps, first, periods: text and number within the text -> lengths; first start on the time line; and sum and
            number of the ranks' times to the next step [ns].
    """

    by: By
    warm: frozenset[int] = frozenset()
    uneven: frozenset[int] = frozenset()
    steps: dict[tuple[str, int], dict[Key, int]] = field(default_factory=dict)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    periods: dict[tuple[str, int], Sums] = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)
    warm_up: set[tuple[str, int]] = field(default_factory=set)
    phases: dict[str, Phase] = field(default_factory=dict)

    def add(self, rank: Rank, added: RankSteps, gpu: Mapping[str, int]) -> None:
        """Add the steps and phases of a rank.

        Args:
            rank: the rank.
            added: its steps, by times from the start of the time line, and its phases.
            gpu: phase -> time of the operations launched in it [ns].
        """
        key = key_of(self.by, rank)
        for step, (start, length) in added.steps.items():
            times = self.steps.setdefault(step, {})
            times[key] = max(length, times.get(key, 0))
            self.first.setdefault(step, start)
        is_even = int(rank.number not in self.uneven)
        merge(self.periods, {step: Sums((period * is_even, is_even)) for step, period in added.periods.items()})
        self.cut |= added.cut
        self.warm_up |= added.of(self.warm)
        for text, spread in added.phases.items():
            phase = self.phases.setdefault(text, Phase())
            phase.spreads.append(spread)
            phase.totals[key] += spread.moments.total
            phase.gpu += gpu.get(text, 0)

    def step_rows(
        self,
        slow: Mapping[tuple[str, int], Cause],
        longest: Mapping[tuple[str, int], Sequence[int]] | None,
        ranks: Mapping[int, Key],
        hosts: Mapping[int, str | None],
    ) -> list[Row]:
        """Return a row per step, the longest first; `over_median` compares with whole steps that are no warm-up.

        Args:
            slow: cause of each slow step.
            longest: ranks whose own work takes longest in a step; None: not known, and the rank with the clearly
                longest marker counts, which may be one that waits if ranks wait for each other.
            ranks: number of a rank -> its key in the table.
            hosts: number of a rank -> its host.
        """
        means = {step: sum(times.values()) / len(times) for step, times in self.steps.items()}
        whole = [mean for step, mean in means.items() if step not in self.cut | self.warm_up]
        typical = median(whole) if whole else 0
        rows = []
        for step, times in self.steps.items():
            least, most = min(times.values()), max(times.values())
            over = means[step] / typical if typical and step not in self.cut else None
            lasts = (self.first[step], len(times), means[step], least, most, most - least)
            cause, alone = slow.get(step), () if longest is None else _only(longest.get(step, ()), ranks)
            slowest = _slowest_of(cause, ranks) or alone or _slowest(times, _CLEARLY)
            grown = _grown(cause, means[step] - typical)
            rest = int(step in self.warm_up), ratio(*self.periods[step]), *_several_of(cause, hosts)
            rows.append((*step, *lasts, *slowest, over, *grown, *rest))
        return sorted(rows, key=lambda row: (-row[4], row[2], row[0], row[1]))

    def phase_rows(self) -> list[Row]:
        """Return a row per phase, most time first; imbalance is the largest rank total by the mean of rank totals."""
        rows = []
        for text, phase in self.phases.items():
            totals = phase.totals
            lasts = statistics(Spread.sum(phase.spreads))
            imbalance = max(totals.values()) * len(totals) / totals.total()
            rows.append((text, len(totals), *lasts, *_slowest(totals), imbalance, phase.gpu))
        return sorted(rows, key=lambda row: (-row[3], row[0]))


def _slowest_of(cause: Cause | None, ranks: Mapping[int, Key]) -> Key:
    """Return the key that makes a slow step slow; NULL if it is slow on all; an empty key for other steps."""
    if cause is None:
        return ()
    return _only(cause.ranks, ranks) if cause.ranks else (None,) * len(next(iter(ranks.values())))


def _several_of(cause: Cause | None, hosts: Mapping[int, str | None]) -> tuple[str | None, str | None]:
    """Return the host all of whose ranks make a slow step slow; else the several ranks that do."""
    if cause is None or len(cause.ranks) < 2:
        return None, None
    host, *others = {hosts[rank] for rank in cause.ranks}
    whole = [rank for rank, its in hosts.items() if its == host]
    return (None, listed(sorted(cause.ranks))) if others or len(whole) > len(cause.ranks) else (host, None)


def _only(longest: Sequence[int], ranks: Mapping[int, Key]) -> Key:
    """Return the common key of some ranks; NULL if they have several."""
    keys = {ranks[rank] for rank in longest}
    return keys.pop() if len(keys) == 1 else (None,) * len(next(iter(ranks.values())))


def _grown(cause: Cause | None, longer: float) -> Row:
    """Return the part that grew most in a slow step, by how much [ns], the main name in it, and the rank.

    Operations that run at once all take longer, so the growth is cut to that of the step.
    """
    if cause is None:
        return None, None, None, None
    by, rank = min(cause.takes[cause.mainly], round(longer)), cause.ranks[0] if len(cause.ranks) == 1 else None
    return _GROWN[cause.mainly], by, cause.largest[0] or None, rank


def _slowest(times: Mapping[Key, int], margin: float = 0.0) -> Key:
    """Return the key with the longest time; NULL if the next one is less than the margin shorter."""
    first, *others = sorted(times, key=lambda key: (-times[key], order_of(key)))
    is_clear = not others or times[first] - times[others[0]] > margin * times[first]
    return first if is_clear else (None,) * len(first)


_MEASURES = ("elapsed_ns", "busy_ns", "compute_ns", "communication_ns", "copy_ns")

TABLES = by_name(
    table_of(
        "ranks",
        "Totals of each rank (host, agent, stream) in the time that counts. What runs at once on an agent counts once.",
        Field("hostname", "", "host name"),
        Field("kernels", "", "dispatches"),
        Field("copies", "", "copies", True),
        Field("elapsed_ns", "ns", "first start to last end of its operations", True),
        Field("busy_ns", "ns", "time with any operation"),
        Field("compute_ns", "ns", "time with kernels other than communication"),
        Field("communication_ns", "ns", "time with communication kernels, waiting included"),
        Field("copy_ns", "ns", "time with copies", True),
        Field("kernel_sum_ns", "ns", "sum of durations of all kernels; above busy_ns when they overlap", True),
        Field("compute_by_mean", "", "compute_ns by the mean of all"),
    ),
    table_of(
        "imbalance",
        "How evenly ranks (or hosts, agents, streams) are loaded: largest by mean, 1 when all are equal.",
        Field("measure", "", "column of the table of ranks"),
        Field("mean_ns", "ns", "mean"),
        Field("min_ns", "ns", "smallest", True),
        Field("min_rank", "", "its rank, NULL: several (--by host: min_hostname; agent, stream: the id follows)"),
        Field("max_ns", "ns", "largest"),
        Field("max_rank", "", "its rank, or as above"),
        Field("imbalance", "", "largest by mean"),
        title="Balance of ranks",
    ),
    *collectives.TABLES.values(),
    *EXPOSED.values(),
    table_of(
        "steps",
        "Time of each step over all ranks, by marker; the longest first. A host takes as long as its longest rank.",
        Field("step", "", "text of the marker"),
        Field("number", "", "which of this text, from 1", True),
        Field("at_ns", "ns", "start on the first rank that has it, from the start of the time line"),
        Field("ranks", "", "ranks (--by host: hosts) that have it", True),
        Field("mean_ns", "ns", "from start to end of its marker, without time between steps; mean over these"),
        Field("min_ns", "ns", "shortest", True),
        Field("max_ns", "ns", "longest"),
        Field("spread_ns", "ns", "longest - shortest"),
        Field("slowest_rank", "", "rank that was slow in it (--by host: slowest_hostname), as said below; NULL: none"),
        Field("over_median", "", "mean_ns by the median of all steps but warm-up; NULL: the window cuts it"),
        Field(
            "grew",
            "",
            "of a slow step: what grew most beside usual ones: compute, communication, copy or idle; else NULL",
            True,
        ),
        Field("grew_by_ns", "ns", "by how much, at most by as much as the step", True),
        Field(
            "grew_in",
            "",
            "kernel, or what the host did meanwhile, that grew most of it; NULL: all kernels alike",
            True,
            is_kernel=True,
        ),
        Field("grew_rank", "", "the rank that makes the step slow; NULL: several, or all ranks are alike", True),
        Field("is_warm_up", "", "1: it is warm-up, which is judged apart; else 0", True),
        Field(
            "period_ns",
            "ns",
            "to the start of the next step, time between included; mean over ranks; NULL: clocks do not fit together",
            True,
        ),
        Field("grew_host", "", "the host all of whose ranks make the step slow; else NULL", True),
        Field("grew_ranks", "", "several ranks, not all of one host, that make the step slow; else NULL", True),
        chart="rocpd.summary.plots:steps",
        picture=Picture("rocpd.summary.pictures:steps"),
    ),
    table_of(
        "phases",
        "Markers whose texts differ in numbers only (# stands for them), over all ranks.",
        Field("phase", "", "text"),
        Field("ranks", "", "ranks (--by host: hosts) that have it", True),
        *STATISTICS,
        Field("slowest_rank", "", "rank (--by host: slowest_hostname) with most time in it; NULL: several"),
        Field("imbalance", "", "its time by the mean of all"),
        Field("gpu_ns", "ns", "operations launched in it, by its thread, in steps by any: sum of durations"),
    ),
    table_of(
        "heat",
        "Rank × time: what each does in each slice of the time line; a host: the mean of its ranks with GPU work.",
        Field("at_ns", "ns", "start of the slice, from the start of the time line"),
        Field("slice_ns", "ns", "its length"),
        Field("busy_percent", "%", "time with any operation"),
        Field("compute_percent", "%", "time with compute"),
        Field("communication_percent", "%", "time with communication"),
        Field("exposed_communication_percent", "%", "time with communication and without compute", True),
        Field("exposed_copies_percent", "%", "time with copies and nothing else", True),
        chart="rocpd.summary.plots:heat",
        picture=Picture("rocpd.summary.pictures:heat", is_all=True),
    ),
)


@frozen
class _Span:
    """First start and last end, by the clock of a rank or on the line [ns]; an empty span ends before it starts."""

    start: int = 0
    end: int = -1

    def __add__(self, other: _Span) -> _Span:
        spans = [span for span in (self, other) if span.start <= span.end]
        return _Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else self

    def length(self) -> int:
        return max(0, self.end - self.start)

    def on_line(self, shift: Shift) -> _Span:
        return _Span(shift.to_line(self.start), shift.to_line(self.end)) if self.start <= self.end else self


@frozen
class _Load(Total):
    """The load of a rank, host, agent or stream: counts and times [ns]."""

    kernels: int = 0
    copies: int = 0
    span: _Span = _Span()
    spent: PartTimes = PartTimes()
    kernel_sum: int = 0

    def times(self) -> tuple[int, ...]:
        """Return the values of `_MEASURES`."""
        spent = self.spent
        return self.span.length(), spent.busy, spent.compute, spent.all_communication, spent.all_copies


class _Slices(NamedTuple):
    """Equal slices of the time line: start [ns], width [ns] and number; rank -> the shift of its times."""

    start: int
    width: int
    number: int
    shifts: dict[int, Shift]


@frozen
class _Question:
    """The question to each rank.

    Args:
        categories: say which kernels are communication.
        step: markers that are steps.
        slices: slices of the heat map; None: it is not wanted.
        times: time of each rank that counts in totals.
        wanted: the more expensive tables that are used.
    """

    categories: Categories
    step: re.Pattern[str]
    slices: _Slices | None
    times: Times
    wanted: frozenset[str]


class _Compared(NamedTuple):
    """Values of one rank to compare: number of operations, loads and shares of slices by division, channels, steps.

    `gpu`: folded text of markers -> time of the operations launched in them [ns].
    """

    operations: int
    loads: dict[Key, _Load]
    heat: dict[Key, Floats]
    channels: list[Channel]
    steps: RankSteps
    gpu: dict[str, int]
    exposed: ExposedPieces


def ranks(reading: Reading) -> Tables:
    """Compare ranks, or hosts, agents, streams. Collectives and steps are left out, with a note, if there are none.

    Raises:
        RocpdError: there are neither operations nor markers.
    """
    by = reading.by or By.RANK
    if by in LAUNCHES:
        yield from collectives_by_launch(reading, by)
        return
    wanted = frozenset(filter(reading.wants, ("phases", "heat")))
    slices = _slices(reading) if "heat" in wanted else None  # the time line may depend on all ranks
    question = _Question(
        load(reading.options.categories),
        is_step(reading.options.step_marker),
        slices,
        reading.asking(replace(reading.options, by=by)).times(),
        wanted,
    )
    loads: dict[Key, _Load] = {}
    heat: dict[Key, Floats] = {}
    working_ranks: Counter[Key] = Counter()
    operations = 0
    communication: dict[int, RankCommunication] = {}
    kept = collectives.KeptBlame(reading)
    answers = reading.each(partial(_of_rank, question=question, draws=kept.known is None))
    yield answers.then(partial(_tell_meetings, reading))
    uneven = frozenset(rank for clock in reading.session.job.alignment.contradicted for rank in clock.ranks)
    steps = Steps(by if by in GROUPS else By.RANK, reading.warm_up(), uneven)
    for rank, answer in answers:
        compared, communication[rank.number] = answer
        shift = reading.shift(rank.number) if reading.session.time_range else UNSHIFTED
        merge(loads, {key: replace(load, span=load.span.on_line(shift)) for key, load in compared.loads.items()})
        operations += compared.operations
        merge(heat, compared.heat)
        working_ranks.update(compared.heat.keys())
        steps.add(rank, compared.steps.on_line(shift), compared.gpu)
    if not operations and not steps.phases:
        raise RocpdError("no kernels, copies or markers in the selection")
    judgement, tables = collectives.communication(reading, by, communication, kept)
    working = _working(reading, by, loads)
    yield _ranks(reading, by, working, judgement)
    yield _imbalance(by, working, judgement.findings)
    yield from tables
    yield from _steps(reading, steps, judgement)
    if heat and slices:
        yield _heat_table(reading, slices, heat, working_ranks)


def _tell_meetings(reading: Reading, answers: Sequence[tuple[Rank, tuple[_Compared, RankCommunication]]]) -> None:
    """Give the job the places where clocks meet, which it would otherwise read again."""
    if not reading.session.is_part and not reading.options.names_files:
        tell_meetings(reading.session.job, (compared.channels for _, (compared, _) in answers))


def _slices(reading: Reading) -> _Slices:
    read_first(reading.session, reading.options.step_marker)
    if not reading.session.time_range:
        return _Slices(0, 1, reading.options.bins, {})
    start, end = reading.line()
    width = max(1, -(-(end - start) // reading.options.bins))
    shifts = {rank.number: reading.shift(rank.number) for rank in reading.session.ranks}
    return _Slices(start, width, reading.options.bins, shifts)


_COMPARED = Fact("compared", 5, (_Compared, _Load, _Span, PartTimes, RankSteps, Spread, ExposedPieces, *OF_CHANNELS))


def _of_rank(reading: RankReading, question: _Question, draws: bool) -> tuple[_Compared, RankCommunication]:
    """Read the compared values of one rank, and its communication; `draws`: with its graph."""
    slices, number = question.slices, reading.rank.number
    on_line = slices and (slices[:3], slices.shifts.get(number))
    asked = on_line, question.times.get(number), sorted(question.wanted)
    compared = reading.derived(_COMPARED, partial(_compared, question=question), *asked)
    graph = read_graph(reading, question.categories, question.step) if draws else None
    return compared, RankCommunication(compared.channels, compared.steps, graph, compared.exposed)


def _compared(reading: RankReading, question: _Question) -> _Compared:
    names, by = OperationNames(), reading.options.by or By.RANK
    categories, slices, wanted = question.categories, question.slices, question.wanted
    ops = read_ops(reading, names, stacks="phases" in wanted)
    kinds = kinds_of(ops, categories, names)
    loads, exposed = _loads(reading, ops, kinds, question)
    seen = ops.within(reading.window.base)  # by the rank's own window, whose edges may lie some ns off the line's
    lanes = seen.lanes(by) if by in LANES else [(NULL, seen)]
    heat = {
        key_of(by, reading.rank, lane): _heat(on_lane, kinds_of(on_lane, categories, names), slices, reading.rank)
        for lane, on_lane in lanes
        if len(on_lane) and slices
    }
    # Without operations, phases show that there are events at all.
    steps = steps_of(reading.reader, question.step, phases="phases" in wanted or not len(ops))
    gpu = launched_in(reading, ops) if "phases" in wanted and steps.phases else {}
    return _Compared(len(ops), loads, heat, channels_of(reading, ops, names, categories), steps, gpu, exposed)


def _loads(reading: RankReading, ops: Ops, kinds: Ints, question: _Question) -> tuple[dict[Key, _Load], ExposedPieces]:
    """Return the load of a rank, or of each agent or stream, in the time that counts, and its exposed communication."""
    by = reading.options.by or By.RANK
    loads = {} if by in LANES else {key_of(by, reading.rank): _Load()}
    pieces = [np.zeros((3, 0), np.int64)]
    for spent in read_agent_times(reading, question.times.get(reading.rank.number), ops, kinds):
        busy, rows = spent.take(spent.part != IDLE), rows_within(ops, by, spent.lane, spent.span)
        kernels, copies = (rows[ops.kind[rows] == kind] for kind in (KERNEL, COPY))
        span = _Span(*busy.span) if len(busy.start) else _Span()
        load = _Load(len(kernels), len(copies), span, PartTimes.of(spent), total(ops.duration[kernels]))
        merge(loads, {key_of(by, reading.rank, spent.lane): load})
        talks = spent.take((spent.part == COMMUNICATION) & (by is not By.STREAM))  # other streams hide a stream's work
        pieces.append(np.stack([ops.row[talks.operation], talks.start, talks.end]))
    return loads, ExposedPieces(*np.concatenate(pieces, axis=1))


def _heat(ops: Ops, kinds: Ints, slices: _Slices, rank: Rank) -> Floats:
    """Return the percentages of the table's columns for each slice; exposed times and compute add up."""
    edges = slices.shifts[rank.number].to_clock(slices.start + np.arange(slices.number + 1) * slices.width)
    pieces, part, hides = busy_pieces(ops.start, ops.end, kinds)
    whose = (*(part == kind for kind in range(len(KINDS))), hides & HIDES_COMMUNICATION > 0)
    times = [np.diff(covered((pieces.start[which], pieces.end[which]), edges)) for which in whose]
    compute, exposed, copies, hidden = times
    return np.array([compute + exposed + copies, compute, exposed + hidden, exposed, copies]).T * 100 / slices.width


def _working(reading: Reading, by: By, loads: Mapping[Key, _Load]) -> Mapping[Key, _Load]:
    """Return the loads that have GPU work; report the others, such as launchers."""
    working = {key: load for key, load in loads.items() if load.kernels or load.copies}
    idle = sorted((key for key in loads if key not in working), key=order_of)
    if not working or not idle:
        return loads
    if by is By.RANK:
        which = listed([cast("int", rank) for (rank,) in idle])
        reading.session.note(f"ranks without GPU work are left out of balance: {which}")
    return working


def _ranks(reading: Reading, by: By, loads: Mapping[Key, _Load], judgement: Judgement) -> Summary:
    hosts = {rank.number: rank.hostname for rank in reading.session.ranks}
    is_one_job = loads and reading.session.runs == 1
    mean = sum(load.spent.compute for load in loads.values()) / len(loads) if is_one_job else 0
    table = TABLES["ranks"]
    rows = []
    culprits = judgement.culprits if by is By.RANK else ()
    worst: dict[Key, int] = {(rank,): number for number, rank in enumerate(culprits)}
    for key in sorted(loads, key=lambda key: (worst.get(key, len(worst)), order_of(key))):
        load = loads[key]
        front = key if by in GROUPS else (*key, hosts[cast("int", key[0])])
        share = load.spent.compute / mean if mean else None
        rows.append((*front, load.kernels, load.copies, *load.times(), load.kernel_sum, share))
    fields = table.fields[1:] if by in GROUPS else table.fields
    ranks = Summary(table, (*DIVISIONS[by], *fields), rows, findings=judgement.findings)
    ranks.replays = judgement.replays
    return ranks


def _imbalance(by: By, loads: Mapping[Key, _Load], findings: Sequence[Finding]) -> Summary:
    rows = []
    for number, measure in enumerate(_MEASURES):
        values = {key: loads[key].times()[number] for key in sorted(loads, key=order_of)}
        if time := sum(values.values()):
            least, most = (choose(values, key=values.__getitem__) for choose in (min, max))
            even = values[most] * len(values) / time
            nobody = (None,) * len(least)
            ends = [
                (values[key], *(key if list(values.values()).count(values[key]) == 1 else nobody))
                for key in (least, most)
            ]
            rows.append((measure, time / len(values), *ends[0], *ends[1], even))
    return Summary(TABLES["imbalance"], who(TABLES["imbalance"], by), rows, findings=findings)


def _steps(reading: Reading, steps: Steps, judgement: Judgement) -> Iterator[Summary]:
    if steps.steps:
        ranks = {rank.number: key_of(steps.by, rank) for rank in reading.session.ranks}
        hosts = {rank.number: rank.hostname for rank in reading.session.ranks}
        rows = steps.step_rows(judgement.slow, judgement.longest, ranks, hosts)
        yield Summary(TABLES["steps"], who(TABLES["steps"], steps.by), rows)
    else:
        reading.session.note("no step markers found; --step-marker REGEX says which markers are steps")
    if steps.phases and reading.wants("phases"):
        yield Summary(TABLES["phases"], who(TABLES["phases"], steps.by), steps.phase_rows())


def _heat_table(
    reading: Reading, slices: _Slices, heat: Mapping[Key, Floats], working_ranks: Mapping[Key, int]
) -> Summary:
    def rows() -> Iterator[Row]:  # rows of a thousand ranks take 30 MB
        for key in sorted(heat, key=order_of):
            for index, shares in enumerate((heat[key] / working_ranks[key]).tolist()):
                yield *key, slices.start + index * slices.width, slices.width, *shares

    table = Summary(TABLES["heat"], (*DIVISIONS[reading.by or By.RANK], *TABLES["heat"].fields), rows)
    hosts = {rank.number: rank.hostname or "?" for rank in reading.session.ranks}
    table.hosts = hosts if table.columns[0] == By.RANK and len(set(hosts.values())) > 1 else {}
    return table


def collectives_by_launch(reading: Reading, by: By) -> Tables:
    """Return the tables of collectives, stragglers and waits, divided by step or marker; none without collectives."""
    categories, step = load(reading.options.categories), is_step(reading.options.step_marker)
    yield (answers := reading.each(partial(_launched_in_rank, by=by, categories=categories, step=step)))
    communication: dict[int, RankCommunication] = {}
    keys: dict[int, list[Key]] = {}
    for rank, (of_rank, places) in answers:
        communication[rank.number] = of_rank
        keys |= {id(channel): of_channel for channel, of_channel in zip(of_rank.channels, places, strict=True)}
    if reading.session.runs > 1:
        return
    matched = MatchedCommunication.of(reading, communication, collectives.KeptBlame(reading))
    ranks = {rank.number: rank for rank in reading.session.ranks}
    waiting: dict[Key, Waiting] = {}
    for group in matched.groups:
        startup = first_judged(group, matched.pieces)
        for key, chosen in _places(group, [keys[id(member)] for member in group]):
            of_key = waiting.setdefault(key, Waiting(By.RANK, ranks, matched.clocks))
            of_key.add(tuple(_with_some(member, chosen) for member in group), startup)
    ordered = [(key, each) for key, each in in_order(waiting) if each.listed]
    rows: dict[str, list[Row]] = {
        "collectives": [(*key, *row) for key, each in ordered for row in each.collective_rows()],
        "stragglers": [(*key, *row, None, None, None) for key, each in ordered for row in each.straggler_rows()],
        "waits": [(*key, *row) for key, each in ordered for row in each.pair_rows()],
    }
    for name, of_table in rows.items() if ordered else ():
        rank_first = DIVISIONS[By.RANK] if name == "stragglers" else ()
        yield Summary(TABLES[name], (*DIVISIONS[by], *rank_first, *who(TABLES[name], By.RANK)), of_table)


def _launched_in_rank(
    reading: RankReading, by: By, categories: Categories, step: re.Pattern[str]
) -> tuple[RankCommunication, list[list[Key]]]:
    """Return the communication of a rank, and for each channel the places where its counted kernels were launched."""
    names = OperationNames()
    communication = communication_of(reading, read_ops(reading, names), names, categories, step)
    if not communication.channels:
        return communication, []
    origins = read_origins(reading, by)
    codes = (origins.of(KERNEL, channel.counted.row).tolist() for channel in communication.channels)
    return communication, [[origins.key(code) for code in of_channel] for of_channel in codes]


def _places(group: Group, keys: list[list[Key]]) -> Iterator[tuple[Key, Flags]]:
    """Yield the places where collectives of a group were launched, with a mask of these collectives."""
    known: dict[Key, int] = {}
    place = np.full(len(group[0]), -1, np.int64)
    for member, of_member in reversed(list(zip(group, keys, strict=True))):
        place[member.numbers] = [known.setdefault(key, len(known)) for key in of_member]
    places = list(known)
    for code in distinct(place[place >= 0]).tolist():
        yield places[code], place == code


def _with_some(member: Channel, chosen: Flags) -> Channel:
    """Return a channel with only the kernels of some collectives counted."""
    kept = chosen[member.numbers].nonzero()[0]
    return replace(member, numbers=member.numbers[kept], counted=member.counted.take(kept))
