"""Why agents have nothing to do: by the activity of their host meanwhile, by call and marker, and by function.

Each nanosecond without an operation has one cause: causes add up to the time that counts minus the busy time of the
agent. The time of operations that filters leave out is a cause of its own. A sample of a call stack counts for an idle
piece if it was taken during that piece, on the thread that launches the next operation of the agent; recursive
functions count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Ints, Row, frozen
from rocpd.facts import agent_time
from rocpd.facts.columns import Names, grouped
from rocpd.facts.operations import OperationNames, kinds_of, read_ops
from rocpd.facts.places import WAITING, CallPaths, whereabouts
from rocpd.facts.rank import By, Key, RankReading
from rocpd.facts.regions import HostCall, StackSamples, frame_of, read_stack_samples
from rocpd.facts.short_names import kernel_name
from rocpd.facts.units import RankTime, some_without_steps
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import folded
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, in_order, merge, order_of, percent, rows_of
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, by_name, table_of
from rocpd.summary.time.gpu_time import Gap, gaps_of
from rocpd.table.human import readable

_WORTH_SAYING = 5.0  # percent of the time of all agents

_AT_EDGES = (agent_time.NOT_STARTED, agent_time.FINISHED, agent_time.LEFT_OUT)
_IS_AT_EDGE = np.array([*(cause in _AT_EDGES for cause in agent_time.CAUSES), False])  # -1: not idle

_LISTED = 8  # ranks

_MUCH = 0.4  # share of the idle time that begins in a call, for it to be named
_MOST_OF_IT = 0.5  # of the idle time, in one gap, which is then no habit of the program; of a cause, in one marker

_MEANWHILE = {
    HostCall.LAUNCH: "while the host launches",
    HostCall.SYNCHRONISE: "in calls that synchronise",
    HostCall.ALLOCATE: "in calls that allocate and free",
    HostCall.COPY: "in calls that copy",
    HostCall.MODULE: "in calls that load modules",
    HostCall.COMMUNICATION: "in calls of RCCL",
    HostCall.OTHER: "in other calls of HIP",
    agent_time.HOST: "in host work between calls",
    agent_time.QUEUED: "with the next operation launched, waiting to start",
    agent_time.NOT_STARTED: "before their first operation",
    agent_time.FINISHED: "after their last operation",
}

_CAUSE = Field("cause", "", agent_time.CAUSES_SAID)

TABLES = by_name(
    table_of(
        "idle",
        "Why agents have nothing to do, by what their host does meanwhile; the most common cause first.",
        _CAUSE,
        Field("idle_ns", "ns", "time, of all agents together"),
        Field("percent", "%", "share of the idle time", is_share=True),
        Field("span_percent", "%", "share of the time of the agents, idle or busy"),
        Field("pieces", "", "how many stretches of time", True),
        Field("longest_ns", "ns", "the longest one"),
        title="Idle time by cause",
    ),
    table_of(
        "idle-calls",
        "Which calls and which work of the host agents are idle for: the rows add up to the idle time. # stands for "
        "numbers in texts of markers.",
        _CAUSE,
        Field(
            "name",
            "",
            f"function; `{agent_time.BETWEEN}` of launching outside of them; innermost marker around the host's own "
            "work; NULL: outside of markers, or no call is the cause",
        ),
        Field("idle_ns", "ns", "time, of all agents together"),
        Field("percent", "%", "share of the idle time", is_share=True),
        Field("pieces", "", "how many stretches of time", True),
        Field("longest_ns", "ns", "the longest one"),
        Field("rank", "", "rank of the longest"),
        Field("agent", "", "its agent", True),
        Field("at_ns", "ns", "its start, from the start of the time line"),
        Field(
            "begun_ns",
            "ns",
            "idle times that begin in it, each to its end or to work of the host: the idle time that the "
            "call sets off; idle_ns is the part inside the call",
            True,
        ),
        Field("in_marker", "", "of calls that wait: path of the ranges in which most of it lies; NULL: none", True),
        Field("in_marker_percent", "%", "how much of it lies there", True),
        Field("begun_percent", "%", "begun_ns by the time of the agents", True),
    ),
    table_of(
        "idle-stacks",
        "Functions in which the host is while agents have nothing to do, where call stacks were sampled; by cause, "
        "those with most time of their own first.",
        _CAUSE,
        Field("function", "", "function"),
        Field("file", "", "its file, NULL where not recorded"),
        Field("count", "", "samples with it in their stack, of the thread that launches the next operation", True),
        Field("total_ns", "ns", "time that these stand for, of all agents together"),
        Field("self_ns", "ns", "time with it innermost"),
        Field("percent", "%", "self_ns by the time of all samples of the cause", is_share=True),
        title="Functions behind idle time",
    ),
)

_Stacks = dict[tuple[str, str, str | None], Sums]
"""Cause, function and file -> samples, total time and own time [ns]."""


@frozen
class _Time:
    """Idle time of one cause.

    Args:
        total: sum [ns].
        pieces: number of pieces.
        longest: the longest piece: length [ns], rank, agent, recorded start.
        begun: sum of the gaps that begin with it, up to work of the host [ns].
        markers: path of ranges -> its part of the sum, for a call that waits [ns].
    """

    total: int
    pieces: int
    longest: tuple[int, int, int, int]
    begun: int
    markers: Mapping[str, int]

    def __add__(self, other: _Time) -> _Time:
        longest = max(self.longest, other.longest, key=lambda piece: (piece[0], -piece[1], -piece[3]))
        markers = dict(self.markers)
        merge(markers, other.markers)
        return _Time(self.total + other.total, self.pieces + other.pieces, longest, self.begun + other.begun, markers)

    def main_marker(self) -> tuple[str | None, float | None]:
        """Return the path with most of the time, and its share [%]."""
        if not self.markers:
            return None, None
        path = min(self.markers, key=lambda path: (-self.markers[path], path))
        return path, self.markers[path] * 100 / self.total


_ByCause = dict[tuple[str, str | None], _Time]  # cause, function or marker


class _OfRank(NamedTuple):
    """Idle time of a rank by cause, without operations that filters leave out, and all its time [ns]."""

    rank: int
    hostname: str | None
    causes: dict[str, int]
    span: int

    @property
    def percent(self) -> float:
        """The share of its idle time in all its time [%]."""
        return sum(self.causes.values()) * 100 / self.span


class _Idle(NamedTuple):
    """The results of one rank, or of several.

    Args:
        span: division -> time of agents, idle or busy [ns].
        idle: division -> idle time by cause.
        gaps: the longest gap of each agent, between two operations.
        stacks: division -> functions of the host meanwhile.
        ranks: the ranks with time that counts.
    """

    span: dict[Key, int]
    idle: dict[Key, _ByCause]
    gaps: list[Gap]
    stacks: dict[Key, _Stacks]
    ranks: list[_OfRank]

    def add_rank(self, rank: Rank) -> None:
        """Add the rank of these results, if it has time that counts."""
        causes = Counter[str]()
        for times in self.idle.values():
            causes.update({cause: time.total for cause, time in _causes(times).items() if cause != agent_time.LEFT_OUT})
        if self.span:
            self.ranks.append(_OfRank(rank.number, rank.hostname, dict(causes), sum(self.span.values())))


def idle(reading: Reading) -> Tables:
    """Return idle time by cause, and by call and marker.

    Raises:
        RocpdError: there are no operations.
    """
    times = reading.times()
    work = partial(_idle_of_rank, categories=load(reading.options.categories))
    spans, sums, gaps, stacks, of_ranks = yield from reading.summed(work, _IDLE, given=times, what="kernels or copies")
    ranks = [of_rank for of_rank in of_ranks if of_rank.span]
    _note_steady(reading, [times[of_rank.rank] for of_rank in of_ranks if of_rank.rank in times])
    causes = (row for key, span in in_order(spans) for row in _cause_rows(key, sums.get(key, {}), span))
    findings = [
        *_findings(ranks, gaps, sums.values()),
        *(_by_rank(ranks) if reading.by is By.RANK and len(ranks) > 1 else ()),
    ]
    yield reading.summary(TABLES["idle"], causes, findings=findings)
    yield reading.summary(TABLES["idle-calls"], rows_of(sums, partial(_call_rows, reading, spans)))
    if stacks:
        yield reading.summary(TABLES["idle-stacks"], rows_of(stacks, _stack_rows))


def _note_steady(reading: Reading, times: list[RankTime]) -> None:
    """Note the steps that count, and the time left out at both ends."""
    if steady := [time for time in times if time.steps]:
        steps, warm_up = (sorted({getattr(time, name) for time in steady}) for name in ("steps", "warm_up"))
        shown = [str(some[0]) if len(some) == 1 else f"{some[0]}-{some[-1]}" for some in (steps, warm_up)]
        before = f", without {shown[1]} of warm-up" if warm_up[-1] else ""
        who = "each rank" if len(steady) == len(times) else f"{len(steady)} of {len(times)} ranks"
        reading.session.note(f"idle: in the {shown[0]} steps of {who}{before}; --all counts all active time")
    if text := some_without_steps(times):
        reading.session.note(text)


_IDLE = Fact("idle", 4, (_Idle, _OfRank, _Time, Gap, Sums))


def _idle_of_rank(reading: RankReading, time: RankTime | None, categories: Categories) -> _Idle:
    names = OperationNames()
    ops = read_ops(reading, names)
    kinds, history, paths = kinds_of(ops, categories, names), agent_time.read_history(reading), CallPaths(reading)
    answer, samples = _Idle({}, {}, [], {}, []), read_stack_samples(reading)
    for spent in agent_time.read_agent_times(reading, time, ops, kinds, causes=True):
        for key, pieces in whereabouts(reading, spent.lane).divide(spent.pieces()):
            here = spent.cut(pieces)
            idle = here.idle()
            merge(answer.idle.setdefault(key, {}), _by_cause(idle, history.names, paths, reading.rank.number))
            if functions := _stacks_while(idle, samples, history):
                merge(answer.stacks.setdefault(key, {}), functions)
            merge(answer.span, {key: int(here.length.sum())})
        start, end = spent.take(~_IS_AT_EDGE[spent.cause]).gaps()
        longest = np.argsort(start - end, kind="stable")[:1]
        answer.gaps.extend(gaps_of(reading, spent, names, ops, (start[longest], end[longest])))
    answer.add_rank(reading.rank)
    return answer


def _by_cause(idle: agent_time.AgentTime, names: Names, paths: CallPaths, rank: int) -> _ByCause:
    """Return idle time by cause and by call or marker."""
    times: _ByCause = {}
    length, begun = idle.length, _begun(idle)
    for (cause, what), rows in grouped([idle.cause, idle.what]):
        longest = rows[int(length[rows].argmax())]
        unnamed = agent_time.BETWEEN if agent_time.CAUSES[cause] == HostCall.LAUNCH else None
        name = unnamed if what == NULL else folded(names.texts[what] or "")
        piece = int(length[longest]), rank, idle.agent, int(idle.start[longest])
        markers = paths.times(what, idle.start[rows], length[rows]) if agent_time.CAUSES[cause] in WAITING else {}
        time = _Time(int(length[rows].sum()), len(rows), piece, int(begun[rows].sum()), markers)
        merge(times, {(agent_time.CAUSES[cause], name): time})
    return times


def _begun(idle: agent_time.AgentTime) -> Ints:
    """Return the length of the gap that begins with each piece [ns]; 0 where the gap began earlier.

    Work of the host stands alone: it ends a gap, and another one begins after it.
    """
    if not len(idle.start):
        return idle.start
    works = idle.cause == agent_time.cause_code(agent_time.HOST)
    is_first = np.append(True, (idle.start[1:] != idle.end[:-1]) | works[1:] | works[:-1])
    first = is_first.nonzero()[0]
    length = np.zeros(len(idle.start), np.int64)
    length[first] = idle.end[np.append(first[1:] - 1, len(idle.start) - 1)] - idle.start[first]
    return length


def _causes(times: _ByCause) -> dict[str, _Time]:
    causes: dict[str, _Time] = {}
    for (cause, _), time in times.items():
        merge(causes, {cause: time})
    return causes


def _cause_rows(key: Key, times: _ByCause, span: int) -> Iterator[Row]:
    causes = _causes(times)
    total = sum(time.total for time in causes.values())
    for cause, time in sorted(causes.items(), key=lambda item: (-item[1].total, agent_time.CAUSES.index(item[0]))):
        shares = (time.total * 100 / total, percent(time.total, span))
        yield (*key, cause, time.total, *shares, time.pieces, time.longest[0])


def _call_rows(reading: Reading, spans: Mapping[Key, int], key: Key, times: _ByCause) -> Iterator[Row]:
    total = sum(time.total for time in times.values())
    for (cause, name), time in sorted(times.items(), key=lambda item: (-item[1].total, item[0][0], item[0][1] or "")):
        length, rank, agent, start = time.longest
        at = reading.shift(rank).to_line(start)
        sums = (time.total, time.total * 100 / total, time.pieces)
        begun = percent(time.begun, spans[key])
        yield (*key, cause, name, *sums, length, rank, agent, at, time.begun, *time.main_marker(), begun)


def _findings(ranks: Sequence[_OfRank], gaps: Sequence[Gap], idle: Iterable[_ByCause]) -> Iterator[Finding]:
    """Yield the idle share of agents, where it is larger, its main cause, and a single gap that is most of it."""
    causes = sum((Counter(rank.causes) for rank in ranks), Counter[str]())
    span, total = sum(rank.span for rank in ranks), causes.total()
    share = total * 100 / span
    evidence: dict[str, object] = {"idle_ns": total, "span_ns": span}
    if total == span:
        text = "GPUs ran nothing in this time"
        yield Finding(text, "gpu.idle", Verdict.UNKNOWN, Confidence.CERTAIN, evidence=evidence)
        return
    if share < _WORTH_SAYING:
        text = f"GPUs are busy: idle {share:.1f} % of the time{_far_out(ranks)}"
        yield Finding(text, "gpu.idle", Verdict.NONE, Confidence.CERTAIN, evidence=evidence)
        return
    cause = max(causes, key=causes.__getitem__)
    text, verdict = f"GPUs are idle {share:.0f} % of the time", Verdict.PROBLEM
    if cause == agent_time.UNKNOWN:
        text, verdict = f"{text}; no calls are recorded that would say why", Verdict.UNKNOWN
    else:
        text = f"{text}, {causes[cause] * 100 / total:.0f} % of it {_MEANWHILE[cause]}"
        text += _begins_in(idle, total, span) if cause == agent_time.QUEUED else _most_in(idle, cause)
    text += _far_out(ranks, cause) + _one_gap(gaps, total)
    evidence["idle_cause"] = cause
    yield Finding(text, "gpu.idle", verdict, Confidence.CERTAIN, evidence=evidence)


def _most_in(idle: Iterable[_ByCause], cause: str) -> str:
    """Return the marker or call with most of the idle time of a cause, in words; empty if none has most."""
    times = Counter[str | None]()
    for of_key in idle:
        times.update({name: time.total for (its_cause, name), time in of_key.items() if its_cause == cause})
    name, most = max(times.items(), key=lambda each: each[1], default=(None, 0))
    if name in (None, agent_time.BETWEEN) or most < _MOST_OF_IT * times.total():
        return ""
    return f", most of that in {name}"


def _begins_in(idle: Iterable[_ByCause], total: int, span: int) -> str:
    """Return the call in which much of the idle time begins, in words, or nothing; a queue does not show the reason."""
    begun = Counter[tuple[str, str | None]]()
    for of_key in idle:
        begun.update({which: time.begun for which, time in of_key.items()})
    (_, name), most = max(begun.items(), key=lambda each: each[1])
    if name is None or most < _MUCH * total:
        return ""
    return f"; gaps that begin in {name} take {most * 100 / span:.1f} % of the time"


def _by_rank(ranks: Sequence[_OfRank]) -> Iterator[Finding]:
    """Yield the idle time of each rank over all causes, the longest first; of many ranks the first and the last."""
    ordered = sorted(ranks, key=lambda each: -each.percent)
    times = (readable(sum(each.causes.values()), "ns") for each in ordered)
    said = [f"rank {of.rank} ({of.percent:.1f} %, {time})" for of, time in zip(ordered, times, strict=True)]
    text = ", ".join(said if len(said) <= _LISTED else said[: _LISTED - 1])
    text += f" … {said[-1]}" if len(said) > _LISTED else ""
    worst, evidence = ordered[0].rank, {"idle_percent": ordered[0].percent}
    yield Finding(f"idle most: {text}", "gpu.idle_ranks", Verdict.NOTE, Confidence.CERTAIN, worst, evidence=evidence)


def _far_out(ranks: Sequence[_OfRank], said: str = agent_time.UNKNOWN) -> str:
    """Return the one rank or host that is idle twice as much as half of the ranks, and why, in words; or nothing."""
    middle = median(rank.percent for rank in ranks)
    out = [rank for rank in ranks if rank.percent >= max(2 * middle, _WORTH_SAYING)]
    hosts = [rank.hostname for rank in out]
    is_host = len(out) > 1 and hosts == [rank.hostname for rank in ranks if rank.hostname in hosts[:1]]
    if len(out) * 2 >= len(ranks) or not (len(out) == 1 or is_host):
        return ""
    causes = sum((Counter(rank.causes) for rank in out), Counter[str]())
    share = causes.total() * 100 / sum(rank.span for rank in out)
    cause = max(causes, key=causes.__getitem__)
    why = f", most {_MEANWHILE[cause]}" if cause not in (said, agent_time.UNKNOWN) else ""
    who = f"host {hosts[0]}" if is_host else f"rank {out[0].rank}"
    return f"; {who} {share:.1f} %{why}, half of the ranks {middle:.1f} % or less"


def _one_gap(gaps: Sequence[Gap], idle: int) -> str:
    """Return the gaps, one of each agent, that are most of the idle time, in words; or nothing."""
    in_gaps = sum(gap.length for gap in gaps)
    if in_gaps < _MOST_OF_IT * idle:
        return ""
    longest = max(gaps, key=Gap.order)
    of = "one gap" if len(gaps) == 1 else "one gap of each GPU, the longest"
    names = {name: kernel_name(name).short for name in (longest.before, longest.after) if name}
    sides = (("after", longest.before), ("before", longest.after))
    where = " and ".join(f"{side} {names[name]}" for side, name in sides if name)
    length = readable(longest.length, "ns")
    return f"; {in_gaps * 100 / idle:.0f} % of it is {of} of {length} on rank {longest.rank}{where and f', {where}'}"


def _stacks_while(idle: agent_time.AgentTime, samples: StackSamples, history: agent_time.History) -> _Stacks:
    """Return the functions of the threads that an agent waited for; `idle` is in order of time."""
    sums: _Stacks = {}
    if not len(samples.at) or not len(idle.start):
        return sums
    piece = np.maximum(np.searchsorted(idle.start, samples.at, "right") - 1, 0)
    is_inside = (samples.at >= idle.start[piece]) & (samples.at < idle.end[piece])
    rows = (is_inside & (_threads(idle, history)[piece] == samples.thread) & (samples.thread != NULL)).nonzero()[0]
    for row in rows.tolist():
        cause, time = agent_time.CAUSES[idle.cause[piece[row]]], int(samples.length[row])
        places = [frame_of(text)[:2] for text in samples.paths[row]]
        for place in dict.fromkeys(places):
            merge(sums, {(cause, *place): Sums((1, time, time if place == places[-1] else 0))})
    return sums


def _threads(idle: agent_time.AgentTime, history: agent_time.History) -> Ints:
    """Return for each piece the thread that launches the next operation; `NULL` if none is known."""
    regions = history.regions
    ops = history.ops.take((history.ops.agent == idle.agent).nonzero()[0])
    ops = ops.take(np.argsort(ops.start, kind="stable"))
    after = np.searchsorted(ops.start, idle.end)
    has_one = after < len(ops.start)
    threads = np.full(len(idle.end), NULL)
    if has_one.any() and len(regions.end):
        call = launching_regions(regions.stack, regions.start, regions.end, ops.stack[after[has_one]])
        threads[has_one] = np.where(call >= 0, regions.thread[call], NULL)
    return threads


def _stack_rows(key: Row, sums: Mapping[tuple[str, str, str | None], Sums]) -> Iterator[Row]:
    """Yield the rows of one division."""
    whole: dict[str, int] = {}
    for (cause, _, _), (_, _, own_time) in sums.items():
        whole[cause] = whole.get(cause, 0) + own_time
    for (cause, *place), (count, time, own_time) in sorted(
        sums.items(), key=lambda item: (-whole[item[0][0]], item[0][0], -item[1][2], -item[1][1], order_of(item[0]))
    ):
        yield (*key, cause, *place, count, time, own_time, percent(own_time, whole[cause]))
