"""Why agents are idle: every nanosecond without operation has one cause, by what the host does meanwhile.

The causes of each agent add up to the time in which its rank recorded events, or to the window, less the time in which
it is busy. `idle_causes` says how a gap is divided. Windows select a part of the idle time of the whole trace; filters
of events don't apply: what is left out would seem idle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.call_paths import WAITING, CallPaths
from rocpd.summary.course import Course, course_of
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.idle_causes import CAUSES, DRAINED, HOST, QUEUED, START, UNKNOWN, Idle, activities, idle_pieces
from rocpd.summary.ops import OperationNames, has_its_time, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.regions import read_regions
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.steady import SteadyPart, some_without_steps, steady_default
from rocpd.summary.sums import merge
from rocpd.trace.host_calls import HostCall
from rocpd.trace.steps import folded, is_step
from rocpd.types import NULL, Row

_WORTH_SAYING = 5.0  # percent of the time of all agents
_MEANWHILE = {
    HostCall.LAUNCH: "while the host launches",
    HostCall.SYNCHRONISE: "in calls that synchronise",
    HostCall.ALLOCATE: "in calls that allocate and free",
    HostCall.COPY: "in calls that copy",
    HostCall.MODULE: "in calls that load modules",
    HostCall.COMMUNICATION: "in calls of RCCL",
    HostCall.OTHER: "in other calls of HIP",
    HOST: "while the host works for itself",
    QUEUED: "with the next operation launched, waiting to start",
}

TABLES = by_name(
    TableDefinition(
        "idle",
        "Why agents have nothing to do, by what their host does meanwhile; the most common cause first.",
        (
            Field("cause", "", "what the host does, or where the agent stands"),
            Field("idle_ns", "ns", "time, of all agents together"),
            Field("percent", "%", "share of the idle time", is_share=True),
            Field("span_percent", "%", "share of the time of the agents, idle or busy"),
            Field("pieces", "", "how many stretches of time", True),
            Field("longest_ns", "ns", "the longest one"),
        ),
        title="Idle time by cause",
    ),
    TableDefinition(
        "idle-calls",
        "Which calls and which work of the host agents are idle for; # stands for numbers in texts of markers.",
        (
            Field("cause", "", "what the host does"),
            Field("name", "", "function, or innermost marker around the host's own work"),
            Field("idle_ns", "ns", "time, of all agents together"),
            Field("percent", "%", "share of the idle time", is_share=True),
            Field("pieces", "", "how many stretches of time", True),
            Field("longest_ns", "ns", "the longest one"),
            Field("rank", "", "rank of the longest"),
            Field("agent", "", "its agent", True),
            Field("at_ns", "ns", "its start, from the start of the time line"),
            Field(
                "begun_ns", "ns", "idle times that begin in it, to their end, or until the host works for itself", True
            ),
            Field("in_marker", "", "of calls that wait: path of the ranges in which most of it lies; NULL: none", True),
            Field("in_marker_percent", "%", "how much of it lies there", True),
        ),
    ),
)


@frozen
class _Time:
    """Idle time of one cause.

    Args:
        total: sum [ns].
        pieces: how many.
        longest: length [ns], rank, agent, start as recorded.
        begun: sum of the gaps that begin with it, up to work of the host [ns].
        markers: path of ranges -> its part of the sum, where it is a call that waits [ns].
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


class _Rank(NamedTuple):
    """What one rank adds: division -> idle time by cause, and time of its agents, idle or busy [ns]; its steps."""

    idle: dict[Key, _ByCause]
    span: dict[Key, int]
    steady: SteadyPart | None


def idle(reading: Reading) -> Iterator[Summary]:
    """Return idle time by cause, and by call and marker.

    Raises:
        RocpdError: there are no operations.
    """
    times: dict[Key, _ByCause] = {}
    spans: dict[Key, int] = {}
    steady: list[SteadyPart | None] = []
    work = partial(_of_rank, step=is_step(reading.options.step_marker))
    for _, answer in reading.each(work):
        for key, of_rank in answer.idle.items():
            merge(times.setdefault(key, {}), of_rank)
        merge(spans, answer.span)
        steady += [answer.steady] if answer.span else []
    if not spans:
        raise RocpdError("no kernels or copies in the selection")
    _note_steady(reading, steady)
    causes = (row for key in sorted(spans, key=order_of) for row in _cause_rows(key, times.get(key, {}), spans[key]))
    all_findings = [*_findings(times, spans)]
    if any(reading.session.selection.filtered.values()):
        all_findings = [replace(each, text=f"{each.text}, whatever the filters leave out") for each in all_findings]
    yield reading.summary(TABLES["idle"], causes, findings=all_findings)
    calls = (row for key in sorted(times, key=order_of) for row in _call_rows(reading, key, times[key]))
    yield reading.summary(TABLES["idle-calls"], calls)


def _note_steady(reading: Reading, parts: list[SteadyPart | None]) -> None:
    """Say what is left out at both ends."""
    steady = [part for part in parts if part]
    if steady:
        steps, warm_up = (sorted({getattr(part, name) for part in steady}) for name in ("steps", "warm_up"))
        shown = [str(some[0]) if len(some) == 1 else f"{some[0]}-{some[-1]}" for some in (steps, warm_up)]
        before = f", without {shown[1]} of warm-up" if warm_up[-1] else ""
        who = "each rank" if len(steady) == len(parts) else f"{len(steady)} of {len(parts)} ranks"
        reading.session.note(f"idle: in the {shown[0]} steps of {who}{before}; --all counts the whole trace")
    if text := some_without_steps(parts):
        reading.session.note(text)


class _Gaps(NamedTuple):
    """When an agent is idle and why, between two times [ns]."""

    agent: int
    idle: Idle
    low: int
    high: int


class _History(NamedTuple):
    """The gaps of the agents of a rank, names in them, where calls are made, steps that count, and what is left out."""

    gaps: Sequence[_Gaps]
    names: Names
    paths: CallPaths
    steady: SteadyPart | None
    left_out: Counter[str]


def _of_rank(reading: RankReading, step: re.Pattern[str]) -> _Rank:
    history = reading.reader.once(("idle", step, reading.options.everything), lambda: _history(reading, step))
    reading.left_out.update(history.left_out)
    answer = _Rank({}, {}, history.steady)
    for agent, idle_of_agent, low, high in history.gaps:
        course = course_of(reading, agent)
        for key, idle_here in _divided(idle_of_agent, course):
            times = _by_cause(idle_here, history, (reading.rank.number, agent))
            merge(answer.idle.setdefault(key, {}), times)
        for _, place, start, end in zip(*(column.tolist() for column in course.between(low, high)), strict=True):
            merge(answer.span, {course.keys[place]: end - start})
    return answer


def _history(reading: RankReading, step: re.Pattern[str]) -> _History:
    whole = reading.whole()
    ops = read_ops(whole, OperationNames(), stacks=True)
    if not len(ops):
        return _History((), Names(), CallPaths(whole), None, Counter())
    regions, names = read_regions(whole)
    ends = [(int(some.start.min()), int(some.end.max())) for some in (ops, regions) if len(some.start)]
    first, last = min(start for start, _ in ends), max(end for _, end in ends)
    steady, part = steady_default(reading, step), reading.window.part
    cut = max(first, part.start or first), min(last, part.end or last)
    span = (steady.start, steady.end) if steady else (cut[0], max(cut))
    threads = activities(regions, names)
    gaps, has_time = [], has_its_time(reading.reader)
    for agent, ran in ops.lanes(By.AGENT):
        low, high = span
        if not has_time(agent):
            low, high = max(low, int(ran.start.min())), min(high, int(ran.end.max()))
            if low >= high:
                continue
        pieces = idle_pieces(ran, regions, threads, (first, last)).within(low, high)
        gaps.append(_Gaps(agent, pieces, low, high))
    return _History(gaps, names, CallPaths(reading.whole()), steady, whole.left_out)


def _divided(idle: Idle, course: Course) -> Iterator[tuple[Key, Idle]]:
    """Yield where a rank was, and its idle time there."""
    pieces = course.divide(idle.start, idle.end)
    for (place,), rows in grouped([pieces.place]):
        of = pieces.of[rows]
        yield course.keys[place], Idle(pieces.start[rows], pieces.end[rows], idle.cause[of], idle.what[of])


def _by_cause(idle: Idle, history: _History, owner: tuple[int, int]) -> _ByCause:
    """Return idle time by cause and by call or marker; `owner`: rank and agent."""
    times: _ByCause = {}
    length = idle.end - idle.start
    begun = idle.gaps()
    for (cause, what), rows in grouped([idle.cause, idle.what]):
        longest = rows[int(length[rows].argmax())]
        name = None if what == NULL else folded(history.names.texts[what] or "")
        piece = int(length[longest]), *owner, int(idle.start[longest])
        markers = history.paths.times(what, idle.start[rows], length[rows]) if CAUSES[cause] in WAITING else {}
        time = _Time(int(length[rows].sum()), len(rows), piece, int(begun[rows].sum()), markers)
        merge(times, {(CAUSES[cause], name): time})
    return times


def _causes(times: _ByCause) -> dict[str, _Time]:
    causes: dict[str, _Time] = {}
    for (cause, _), time in times.items():
        merge(causes, {cause: time})
    return causes


def _cause_rows(key: Key, times: _ByCause, span: int) -> Iterator[Row]:
    causes = _causes(times)
    total = sum(time.total for time in causes.values())
    for cause, time in sorted(causes.items(), key=lambda item: (-item[1].total, CAUSES.index(item[0]))):
        share = time.total * 100 / span if span else None
        yield (*key, cause, time.total, time.total * 100 / total, share, time.pieces, time.longest[0])


def _call_rows(reading: Reading, key: Key, times: _ByCause) -> Iterator[Row]:
    total = sum(time.total for time in times.values())
    named = [(cause, name, time) for (cause, name), time in times.items() if name is not None]
    for cause, name, time in sorted(named, key=lambda item: (-item[2].total, item[0], item[1])):
        length, rank, agent, start = time.longest
        at = reading.shift(rank).to_line(start)
        sums = (time.total, time.total * 100 / total, time.pieces)
        yield (*key, cause, name, *sums, length, rank, agent, at, time.begun, *time.main_marker())


def _findings(idle: Mapping[Key, _ByCause], spans: Mapping[Key, int]) -> Iterator[Finding]:
    """Say how much of the time agents are idle once they have started, and what for most of all."""
    causes: dict[str, _Time] = {}
    for times in idle.values():
        merge(causes, _causes(times))
    edges = sum(causes.pop(cause).total for cause in (START, DRAINED) if cause in causes)
    span, total = sum(spans.values()) - edges, sum(time.total for time in causes.values())
    evidence = {"idle_ns": total, "span_ns": span}
    if span <= 0:
        text = "GPUs ran nothing in this time"
        yield Finding(text, "gpu.idle", Verdict.UNKNOWN, Confidence.CERTAIN, evidence=evidence)
        return
    share = total * 100 / span
    if share < _WORTH_SAYING:
        text = f"GPUs are busy: idle {share:.1f} % of the time"
        if span <= edges:
            part = span * 100 / (span + edges)
            text += f" from their first operation to their last, which is {part:.2g} % of all"
        yield Finding(text, "gpu.idle", Verdict.NONE, Confidence.CERTAIN, evidence=evidence)
        return
    cause = max(causes, key=lambda name: causes[name].total)
    part = causes[cause].total * 100 / total
    if cause == UNKNOWN:
        text = f"GPUs are idle {share:.0f} % of the time; no calls are recorded that would say why"
        yield Finding(text, "gpu.idle", Verdict.UNKNOWN, Confidence.CERTAIN, evidence=evidence)
        return
    text = f"GPUs are idle {share:.0f} % of the time, {part:.0f} % of it {_MEANWHILE[cause]}"
    yield Finding(text, "gpu.idle", Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)
