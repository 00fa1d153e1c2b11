"""The time of agents: busy and idle, gaps, overlap, and the parts of a step.

Compute, exposed communication, exposed copies and idle time add up to the time exactly. The parts are those of
`facts.agent_time` in the time that counts; a GPU that several processes use counts once, see `facts.sharing`, but by
rank, agent and stream for each of them. With a division by steps or markers, time belongs to the rank's place then.

Copies by direction have the share of agents' time that copies take while nothing else runs.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from rocpd.base import NULL, Ints, Row, by_key, frozen
from rocpd.facts.agent_time import AgentTime, read_agent_times
from rocpd.facts.columns import columns, grouped, statement
from rocpd.facts.operations import COPY, OperationNames, Ops, has_its_time, kinds_of, read_ops, rows_within
from rocpd.facts.places import whereabouts
from rocpd.facts.rank import LANES, LAUNCHES, By, Key, RankReading, key_of
from rocpd.facts.regions import step_spans
from rocpd.facts.spread import Spread, total
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES, HIDES_COMMUNICATION, HIDES_COPIES, PARTS
from rocpd.facts.units import RankTime, Times, some_without_steps
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.steps import is_step
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, Total, added, in_order, merge, percent, ratio, rows_of, together
from rocpd.summary.kernels import totals
from rocpd.summary.memory.copies import EDGES, begun_in, class_labels, rates, size_label
from rocpd.summary.reading import AGENT, RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of
from rocpd.table.human import readable

EDGES_US = (10, 20, 50, 100, 1000, 10000, 100000)
"""Upper edges of the gap histogram [us]; a gap on an edge counts below it."""

_COMPUTES = 0.1  # share of an agent's compute time from which on a stream counts as computing

_HIDDEN, _COSTS = 5.0, 5.0  # percent hidden below which nothing overlaps; percent of the time that costs something


_MATTERS = 10.0  # percent of the time: exposed communication, exposed copies, start-up

TABLES = by_name(
    totals.TABLES["copies"],
    table_of(
        "gpu-time",
        "How long agents worked: one row per rank and agent unless --by says otherwise; in a window, of all its time.",
        Field("operations", "", "kernels and copies", True),
        Field("span_ns", "ns", "time of agents that counts: steps, else the active part; in a window its length"),
        Field("busy_ns", "ns", "union of all operations, within the window"),
        Field("idle_ns", "ns", "span without operation", True),
        Field("busy_percent", "%", "busy by span"),
        Field("sum_ns", "ns", "sum of durations; above busy_ns when operations overlap", True),
        Field("gaps", "", "times without operation"),
        Field("median_gap_ns", "ns", "median gap", True),
        Field("max_gap_ns", "ns", "longest gap"),
        Field("mean_gap_ns", "ns", "mean gap", True),
        Field("idle_percent", "%", "idle by span: the time lost between operations", True),
    ),
    table_of(
        "gaps",
        "Gaps by their length, each gap for itself.",
        Field("length", "", "from (not including) to (including)"),
        Field("gaps", "", "how many"),
        Field("total_ns", "ns", "their sum"),
        Field("max_ns", "ns", "the longest"),
        Field("percent", "%", "share of the idle time", is_share=True),
        Field("mean_ns", "ns", "their mean", True),
        Field("span_percent", "%", "share of the time of the agents, idle or busy"),
    ),
    table_of(
        "largest-gaps",
        "The longest gaps and what ran before and after them.",
        RANK,
        AGENT,
        Field("at_ns", "ns", "start of the gap, from the start of the time line"),
        Field("gap_ns", "ns", "its length"),
        Field("before", "", "operation that ended last, NULL at the edge of a window", is_kernel=True),
        Field("after", "", "operation that came next, NULL at the edge of a window", is_kernel=True),
        Field("idle_percent", "%", "share of the idle time of all agents"),
    ),
    table_of(
        "overlap",
        "What ran at the same time: compute + exposed communication + exposed copies = busy.",
        Field("busy_ns", "ns", "union of all operations", True),
        Field("compute_ns", "ns", "union of kernels other than communication"),
        Field("communication_ns", "ns", "union of communication kernels"),
        Field("copy_ns", "ns", "union of copies", True),
        Field("hidden_communication_ns", "ns", "communication while something computes", True),
        Field("exposed_communication_ns", "ns", "communication while nothing computes"),
        Field("exposed_copy_ns", "ns", "copies while nothing computes or communicates", True),
        Field("hidden_percent", "%", "hidden by all communication", True),
        Field("exposed_percent", "%", "exposed by all communication"),
        Field("exposed_busy_percent", "%", "exposed communication by busy time", True),
        Field(
            "same_stream_percent",
            "%",
            "communication on streams with a tenth of the compute time or more; NULL where streams are not known",
            True,
        ),
    ),
    table_of(
        "budget",
        "What the time of agents consists of: the parts add up. Per step where steps are marked.",
        Field("part", "", "compute; communication, and copies, while nothing else runs; idle", has_colour=True),
        Field("time_ns", "ns", "of all agents together"),
        Field("per_step_ns", "ns", "of one agent in one step; NULL without steps, or in a window that is not of steps"),
        Field("percent", "%", "share of the time of the agents", is_share=True),
        chart="rocpd.summary.plots:budget",
    ),
    table_of(
        "counted",
        "The time that counts, the mean of the ranks: all but start-up, warm-up and the time after the last step.",
        Field("ranks", "", "ranks whose agents have time"),
        Field("steps", "", "steps that count, of the rank with fewest; 0: time counts without regard to steps"),
        Field("warm_up", "", "steps of warm-up before them"),
        Field("before_ns", "ns", "start-up and warm-up"),
        Field("counted_ns", "ns", "time that counts"),
        Field("after_ns", "ns", "time after that"),
        Field("before_percent", "%", "start-up and warm-up, of the trace"),
        title="Time that counts",
    ),
)


@frozen
class PartTimes(Total):
    """Times of agents in `PARTS` [ns], and of communication and copies that other work hides."""

    compute: int = 0
    communication: int = 0
    copies: int = 0
    idle: int = 0
    hidden_communication: int = 0
    hidden_copies: int = 0

    @classmethod
    def of(cls, spent: AgentTime) -> Self:
        """Return the times of an agent."""
        return cls(*spent.times(), *map(spent.hidden, (HIDES_COMMUNICATION, HIDES_COPIES)))

    def in_parts(self) -> tuple[int, ...]:
        """Return the times of `PARTS` [ns]."""
        return self.compute, self.communication, self.copies, self.idle

    @property
    def busy(self) -> int:
        """The time with any operation [ns]."""
        return self.compute + self.communication + self.copies

    @property
    def span(self) -> int:
        """All time [ns]."""
        return self.busy + self.idle

    @property
    def all_communication(self) -> int:
        """The time with communication [ns]."""
        return self.communication + self.hidden_communication

    @property
    def all_copies(self) -> int:
        """The time with copies [ns]."""
        return self.copies + self.hidden_copies


@frozen
class _Sum(Total):
    """Sums over agents: counts, times [ns], and each gap.

    `in_streams` is the time of communication kernels whose stream is known, `in_computing_streams` the part of it in
    streams that compute.
    """

    operations: int = 0
    collectives: int = 0
    total: int = 0
    in_streams: int = 0
    in_computing_streams: int = 0
    times: PartTimes = PartTimes()
    gap: Spread = field(default_factory=Spread)


class Gap(NamedTuple):
    """A time without operations [ns], and the operations before and after it."""

    length: int
    rank: int
    agent: int
    start: int
    before: str | None
    after: str | None

    def order(self) -> tuple[int, int, int, int]:
        """Return the sort key: the longest last, of equal ones the first last."""
        return self.length, -self.rank, -self.agent, -self.start


def gpu_time(reading: Reading) -> Tables:
    """Return busy and idle time, the gap histogram, the largest gaps, and overlap.

    Raises:
        RocpdError: there is no operation with valid timestamps.
    """
    times = reading.asking(replace(reading.options, by=reading.by or By.AGENT)).times()
    work = partial(_busy, categories=load(reading.options.categories))
    add_up = partial(_busy_in_all, top=reading.options.top)
    yield (answers := reading.each(work, _BUSY, given=times).adding(add_up))
    sums, gaps = added(answers, "kernels or copies")
    if not any(agent.collectives for agent in sums.values()):
        reading.session.note("no communication kernels found")
    ordered = in_order(sums)
    yield reading.summary(TABLES["gpu-time"], (_busy_row(*item) for item in ordered), By.AGENT)
    divisions = by_key((key if reading.by else (), agent) for key, agent in ordered)
    yield reading.summary(TABLES["gaps"], rows_of(divisions, _histogram))
    whole = sum((agent.times for _, agent in ordered), PartTimes())
    largest = _largest_rows(reading, gaps, whole.idle)
    yield Summary.whole(TABLES["largest-gaps"], largest)
    if reading.by is By.STREAM:
        reading.session.note(
            "no overlap by stream: compute and communication run on different streams of an agent: --by agent"
        )
        return
    findings = _overlap(whole, _more(reading))
    yield reading.summary(TABLES["overlap"], (_overlap_row(*item) for item in ordered), By.AGENT, findings)


_BUSY = Fact("busy", 2, (_Sum, PartTimes, Spread, Gap))


_Busy = tuple[dict[Key, _Sum], list[Gap]]


def _busy_in_all(answers: Sequence[_Busy], top: int) -> _Busy:
    """Return the sums and the largest gaps of several ranks as one answer."""
    sums, gaps = together(answers)
    return sums, heapq.nlargest(top, gaps, key=Gap.order)


def _busy(reading: RankReading, time: RankTime | None, categories: Categories) -> _Busy:
    """Return the sums of the agents (by stream: the streams) of one rank, and its largest gaps."""
    by, names = reading.options.by, OperationNames()
    by_agent = replace(reading, options=replace(reading.options, by=by or By.AGENT))
    ops = read_ops(reading, names)
    kinds = kinds_of(ops, categories, names)
    sums: dict[Key, _Sum] = {}
    largest: list[Gap] = []
    for spent in read_agent_times(by_agent, time, ops, kinds):
        places = whereabouts(by_agent, spent.lane)
        of_lane = rows_within(ops, by, spent.lane, spent.span)
        for (place,), rows in grouped([places.course.at(ops.start[of_lane].clip(*spent.span))]):
            merge(sums, {places.keys[place]: _of_operations(ops.take(of_lane[rows]), kinds[of_lane[rows]])})
        for key, pieces in places.divide(spent.pieces()):
            here = spent.cut(pieces)
            start, end = here.gaps()
            merge(sums, {key: _Sum(times=PartTimes.of(here), gap=Spread.of(end - start))})
            most = np.argsort(start - end, kind="stable")[: reading.options.top]
            largest += gaps_of(reading, spent, names, ops, (start[most], end[most]))
    return sums, heapq.nlargest(reading.options.top, largest, key=Gap.order)


def _of_operations(ops: Ops, kinds: Ints) -> _Sum:
    talking = (kinds == COMMUNICATION) & (ops.stream != NULL)
    streams = _computing_streams(ops, (kinds == COMPUTE).nonzero()[0])
    return _Sum(
        operations=len(ops),
        collectives=int((kinds == COMMUNICATION).sum()),
        total=total(ops.duration),
        in_streams=total(ops.duration[talking]),
        in_computing_streams=total(ops.duration[talking & np.isin(ops.stream, streams)]),
    )


def gaps_of(
    reading: RankReading, spent: AgentTime, names: OperationNames, ops: Ops, gaps: tuple[Ints, Ints]
) -> Iterator[Gap]:
    """Yield gaps with the operations before and after them; None where the time of an agent begins or ends."""
    busy = spent.take(spent.operation >= 0)
    for start, end in zip(*(side.tolist() for side in gaps), strict=True):
        at = int(np.searchsorted(busy.start, start))
        before = busy.operation[at - 1 : at][busy.end[at - 1 : at] == start] if at else busy.operation[:0]
        after = busy.operation[at : at + 1][busy.start[at : at + 1] == end]
        around = (names.texts[ops.name[rows[0]]] if len(rows) else None for rows in (before, after))
        yield Gap(end - start, reading.rank.number, spent.agent, start, *around)


def _computing_streams(ops: Ops, compute: Ints) -> Ints:
    """Return the streams with a large enough share of the compute time; `compute`: rows of the computing kernels."""
    streams, of = np.unique(ops.stream[compute], return_inverse=True)
    times = np.bincount(of, ops.duration[compute], len(streams))
    chosen: Ints = streams[(times >= _COMPUTES * times.sum()) & (streams != NULL)]
    return chosen


def _busy_row(key: Key, s: _Sum) -> Row:
    m, t = s.gap.moments, s.times
    gaps = (m.timed, s.gap.quantile(0.5), m.longest, m.mean, percent(t.idle, t.span))
    return (*key, s.operations, t.span, t.busy, t.idle, percent(t.busy, t.span), s.total, *gaps)


def _overlap_row(key: Key, s: _Sum) -> Row:
    t, exposed, hidden = s.times, s.times.communication, s.times.hidden_communication
    times = (t.busy, t.compute, t.all_communication, t.all_copies, hidden, exposed, t.copies)
    shares = percent(hidden, t.all_communication), percent(exposed, t.all_communication), percent(exposed, t.busy)
    return (*key, *times, *shares, percent(s.in_computing_streams, s.in_streams))


def _histogram(key: Key, agents: Sequence[_Sum]) -> Iterator[Row]:
    span = sum(agent.times.span for agent in agents)
    values, counts = Spread.sum(agent.gap for agent in agents).distribution()
    sums = (values.astype(object) * counts) if total(values) > 1 << 40 else values * counts
    idle = int(sums.sum())
    cuts = [0, *np.searchsorted(values, [edge * 1000 for edge in EDGES_US], side="right").tolist(), len(values)]
    labels = class_labels([f"{edge // 1000} ms" if edge >= 1000 else f"{edge} us" for edge in EDGES_US])
    for low, high, label in zip(cuts[:-1], cuts[1:], labels, strict=True):
        count = int(counts[low:high].sum())
        length_ = int(sums[low:high].sum())
        longest = int(values[high - 1]) if high > low else None
        shares = (percent(length_, idle), ratio(length_, count))
        yield (*key, label, count, length_, longest, *shares, percent(length_, span))


def _largest_rows(reading: Reading, gaps: Sequence[Gap], idle: int) -> Iterator[Row]:
    for gap in heapq.nlargest(reading.options.top, gaps, key=Gap.order):
        agent = None if gap.agent == NULL else gap.agent
        at, share = reading.shift(gap.rank).to_line(gap.start), percent(gap.length, idle)
        yield (gap.rank, agent, at, gap.length, gap.before, gap.after, share)


@frozen
class _Budget(Total):
    """Times of all agents, and of those that go through steps; `agent_steps`: the number of steps of these."""

    every: PartTimes
    in_steps: PartTimes
    agent_steps: int


Copies = dict[tuple[str, int], Sums]
"""Direction and class of sizes -> exposed time, total time [ns], and rates [bytes/s] as a Spread."""


class Parts(NamedTuple):
    """The results of one rank, or of several: times by division, copies, and the numbers of ranks that have time."""

    sums: dict[Key, _Budget]
    copies: Copies
    ranks: list[int]


def budget(reading: Reading) -> Tables:
    """Return the parts of a step.

    Raises:
        RocpdError: there are no operations.
    """
    times = reading.times()
    work = partial(parts_of_rank, categories=load(reading.options.categories))
    sums, copies, ranks = yield from reading.summed(work, BUDGET, given=times, what="kernels or copies")
    counted = [times[rank] for rank in ranks if rank in times]
    of_all = sum((each.every for each in sums.values()), PartTimes())
    findings = [
        *_started(reading, times),
        *_unmarked(counted),
        *_overlap(of_all, _more(reading)),
        *exposed_copies(of_all, copies),
    ]
    yield reading.summary(TABLES["budget"], rows_of(sums, _rows), findings=findings)
    if reading.by not in (*LANES, *LAUNCHES):
        yield reading.summary(TABLES["counted"], _counted_rows(reading, times, reading.by))


def _counted_rows(reading: Reading, times: Times, by: By | None) -> Iterator[Row]:
    known = [rank for rank in reading.session.ranks if rank.number in times and rank.number in reading.session.spans]
    for key, ranks in in_order(by_key((key_of(by, rank), rank.number) for rank in known)):
        pairs = [(times[rank], reading.session.spans[rank]) for rank in ranks]
        before = sum(max(0, time.start - span.start) for time, span in pairs)
        after = sum(max(0, span.end - time.end) for time, span in pairs)
        all_ns = sum(span.end - span.start for _, span in pairs)
        means = (ratio(ns, len(ranks)) for ns in (before, max(0, all_ns - before - after), after))
        steps, warm_up = (min(getattr(time, what) for time, _ in pairs) for what in ("steps", "warm_up"))
        yield (*key, len(ranks), steps, warm_up, *means, percent(before, all_ns))


def _started(reading: Reading, times: Times) -> Iterator[Finding]:
    """Yield the share of the trace before the time that counts, if it is a tenth or more."""
    for *_, before, _, _, share in () if reading.session.window else _counted_rows(reading, times, None):
        if share is not None and share >= _MATTERS:
            warm_up = " and warm-up" if any(time.warm_up for time in times.values()) else ""
            verb = "are" if warm_up else "is"
            text = f"start-up{warm_up} {verb} not counted, except in totals by kernel, copy and call: "
            text += f"{readable(before, 'ns')} a rank, {share:.0f} % of the trace"
            yield Finding(text, "job.startup", Verdict.NOTE, Confidence.CERTAIN, evidence={"before_ns": before})


def _unmarked(times: Sequence[RankTime]) -> Iterator[Finding]:
    if text := some_without_steps(times):
        evidence = {"ranks": sum(not time.steps for time in times)}
        yield Finding(text, "step.unmarked", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)


def exposed_copies(times: PartTimes, copies: Copies) -> Iterator[Finding]:
    """Yield the share of time of exposed copies, their main direction, and the rate of most of these."""
    if not times.copies or not copies:
        return
    share, exposed = times.copies * 100 / times.span, Counter[str]()
    for (direction, _), (of_class, _, _) in copies.items():
        exposed[direction] += of_class
    name = max(exposed, key=exposed.__getitem__)
    size = max((size for direction, size in copies if direction == name), key=lambda size: copies[name, size][1])
    median = copies[name, size][2].quantile(0.5)
    rate = median and median / (1 << 30)
    at = f", {rate:.1f} GiB/s in the median for those of {size_label(size)}" if rate else ""
    mostly = "" if exposed[name] * 10 >= 9 * times.copies else f", {exposed[name] * 100 / times.copies:.0f} % of that"
    is_much = share >= _MATTERS
    text = f"{share:.{0 if is_much else 1}f} % of GPU time is exposed copies{mostly or ','} {_direction(name)}{at}"
    evidence = {"exposed_percent": share, "direction": name, "gib_per_s": rate}
    verdict = Verdict.PROBLEM if is_much else Verdict.NONE
    yield Finding(text, "copy.exposed", verdict, Confidence.CERTAIN, evidence=evidence)


def _direction(name: str) -> str:
    """Return a direction for people.

    >>> _direction("MEMORY_COPY_HOST_TO_DEVICE")
    'host to device'
    """
    return name.removeprefix("MEMORY_COPY_").replace("_", " ").lower()


def _more(reading: Reading) -> str:
    """Return a hint at the table on waits in exposed communication; empty if no ranks compare."""
    if len(reading.session.ranks) < 2 or reading.session.runs > 1:
        return ""
    return "; `rocpd summary exposed-communication` says how much of it waits"


def _overlap(times: PartTimes, more: str) -> Iterator[Finding]:
    """Yield the share of exposed communication in the time, and the share that compute hides."""
    if not times.all_communication:
        return
    hidden = times.hidden_communication * 100 / times.all_communication
    share = times.communication * 100 / times.span
    is_lost = _is_lost(hidden, share)
    rule = "comm.overlap" if is_lost else "comm.exposed"
    verdict = Verdict.PROBLEM if is_lost or share >= _MATTERS else Verdict.NONE
    evidence = {"hidden_percent": hidden, "exposed_percent": share}
    yield Finding(said_of_overlap(hidden, share) + more, rule, verdict, Confidence.CERTAIN, evidence=evidence)


def _is_lost(hidden: float, share: float) -> bool:
    return hidden < _HIDDEN and share >= _COSTS


def said_of_overlap(hidden: float, share: float, split: str = "") -> str:
    """Return the hidden share of communication and the exposed share of the time, in words.

    Args:
        hidden: hidden by compute [% of communication].
        share: exposed communication [% of GPU time].
        split: parts of the exposed communication, in words.
    """
    text = f"{share:.0f} % of GPU time is exposed communication{split}"
    if _is_lost(hidden, share):
        return f"communication does not overlap: compute hides {hidden:.1f} % of it; {text}"
    return f"{text}; compute hides {hidden:.0f} % of all communication"


BUDGET = Fact("budget", 4, (Parts, _Budget, PartTimes, Sums, Spread))


def parts_of_rank(reading: RankReading, time: RankTime | None, categories: Categories) -> Parts:
    names = OperationNames()
    ops = read_ops(reading, names)
    sums: dict[Key, _Budget] = {}
    exposed = np.zeros(len(ops), np.int64)
    has_time = has_its_time(reading.reader)
    steps = 1 if reading.options.by is By.STEP else (time.steps if time else 0) or _steps_of_window(reading)
    for spent in read_agent_times(reading, time, ops, kinds_of(ops, categories, names)):
        places, copying = whereabouts(reading, spent.lane), spent.take(spent.part == COPIES)
        np.add.at(exposed, copying.operation, copying.length)
        for key, pieces in places.divide(spent.pieces()):
            added = PartTimes.of(spent.cut(pieces))
            is_stepping = steps and has_time(spent.agent) and key != (None,)
            count = steps if is_stepping and (not time or time.is_first(spent.agent)) else 0
            merge(sums, {key: _Budget(added, added if is_stepping else PartTimes(), count)})
    counted = begun_in(time, ops.start).nonzero()[0]
    ranks = [reading.rank.number] if sums else []
    return Parts(sums, _copies(reading, ops.take(counted), names, exposed[counted]), ranks)


def _steps_of_window(reading: RankReading) -> int:
    """Return the number of steps in the window of a rank if it begins and ends with steps; else 0."""
    part = reading.window.part
    if part.start is None or part.end is None:
        return 0
    spans = step_spans(reading.reader, is_step(reading.options.step_marker)).values()
    inside = [(start, end) for start, end in spans if part.start <= start and end <= part.end]
    is_of_steps = inside and (min(inside)[0], max(end for _, end in inside)) == (part.start, part.end)
    return len(inside) if is_of_steps else 0


def _copies(reading: RankReading, ops: Ops, names: OperationNames, exposed: Ints) -> Copies:
    """Return the copies of a rank; empty if none is exposed, and sizes are not read then."""
    copies: Copies = {}
    if not exposed.any():
        return copies
    row, size = columns(reading.reader, "rocpd_memory_copy", statement("memory_copies"), ("id", "size"))
    sizes, copied = dict(zip(row.tolist(), np.maximum(size, 0).tolist(), strict=True)), (ops.kind == COPY).nonzero()[0]
    size = np.array([sizes.get(number, 0) for number in ops.row[copied].tolist()], np.int64)
    for (code, of_size), rows in grouped([ops.name[copied], np.searchsorted(EDGES, size)]):
        _, time, each = rates(size[rows], ops.duration[copied[rows]])
        merge(copies, {(names.texts[code] or "", of_size): Sums((total(exposed[copied[rows]]), time, each))})
    return copies


def _rows(key: Key, s: _Budget) -> Iterator[Row]:
    for part, time, in_steps in zip(PARTS, s.every.in_parts(), s.in_steps.in_parts(), strict=True):
        yield (*key, part, time, ratio(in_steps, s.agent_steps), percent(time, s.every.span))


def copies(reading: Reading) -> Tables:
    """Return time, bytes and bandwidth by direction, with a finding on the time of exposed copies.

    Raises:
        RocpdError: there are no copies.
    """
    times = reading.asking(replace(reading.options, by=None)).times()
    yield (answers := reading.each(partial(_copies_beside, times=times, categories=load(reading.options.categories))))
    sums: list[tuple[object, totals.OfRank]] = []
    of_all, exposed = PartTimes(), Copies()
    for rank, (of_rank, parts) in answers:
        sums.append((rank, of_rank))
        of_all = sum((each.every for each in parts.sums.values()), of_all)
        merge(exposed, parts.copies)
    table = totals.table_of_copies(reading, answers=sums)
    table.findings = tuple(exposed_copies(of_all, exposed))
    yield table


def _copies_beside(reading: RankReading, times: Times, categories: Categories) -> tuple[totals.OfRank, Parts]:
    """Return the copies of one rank, and the parts of its time."""
    whole, time = replace(reading, options=replace(reading.options, by=None)), times.get(reading.rank.number)
    parts = whole.derived(BUDGET, partial(parts_of_rank, time=time, categories=categories), time)
    return totals.copies_of_rank(reading), parts
