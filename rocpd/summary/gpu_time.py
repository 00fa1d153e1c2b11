"""How agents spend their time: busy as the union of their operations, idle, gaps, and what overlaps what."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.intervals import Union, length, outside, unite
from rocpd.summary.ops import OperationNames, Ops, all_lanes, read_ops, split
from rocpd.summary.options import LAUNCHES, By
from rocpd.summary.origins import read_origins
from rocpd.summary.reading import AGENT, RANK, Base, Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread, total
from rocpd.summary.sums import Total, merge
from rocpd.trace.kernel_categories import Categories, load
from rocpd.types import NULL, Ints, Row

EDGES_US = (10, 20, 50, 100, 1000, 10000, 100000)
"""Upper edges of the gap histogram [us]; a gap on an edge counts below it."""

_COMPUTES = 0.1  # of the compute time of an agent: a stream that has more computes

TABLES = by_name(
    TableDefinition(
        "gpu-time",
        "How long agents worked: one row per rank and agent unless --by says otherwise; in a window, of all its time.",
        (
            Field("operations", "", "kernels and copies", True),
            Field("span_ns", "ns", "first start to last end of each agent, all together; in a window its length"),
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
    ),
    TableDefinition(
        "gaps",
        "Gaps by their length, each gap for itself.",
        (
            Field("length", "", "from (not including) to (including)"),
            Field("gaps", "", "how many"),
            Field("total_ns", "ns", "their sum"),
            Field("max_ns", "ns", "the longest"),
            Field("percent", "%", "share of the idle time", is_share=True),
            Field("mean_ns", "ns", "their mean", True),
            Field("span_percent", "%", "share of the time of the agents, idle or busy"),
        ),
    ),
    TableDefinition(
        "largest-gaps",
        "The longest gaps and what ran before and after them.",
        (
            RANK,
            AGENT,
            Field("at_ns", "ns", "start of the gap, from the start of the time line"),
            Field("gap_ns", "ns", "its length"),
            Field("before", "", "operation that ended last, NULL at the edge of a window", is_kernel=True),
            Field("after", "", "operation that came next, NULL at the edge of a window", is_kernel=True),
        ),
    ),
    TableDefinition(
        "overlap",
        "What ran at the same time: compute + exposed communication + exposed copies = busy.",
        (
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
    ),
)


@frozen
class _Sum(Total):
    """What is added up over agents: counts, times [ns], and each gap.

    Communication is exposed while nothing computes on its agent, a copy while nothing computes or communicates there.
    `in_streams` is the time of communication kernels whose stream is known, `in_computing_streams` of those in streams
    that compute.
    """

    operations: int
    collectives: int
    span: int
    busy: int
    total: int
    compute: int
    communication: int
    copy: int
    exposed: int
    exposed_copy: int
    gap: Spread
    in_streams: int
    in_computing_streams: int


class _Gap(NamedTuple):
    """Time without operation [ns], and what ran before and after."""

    length: int
    rank: int
    agent: int
    start: int
    before: str | None
    after: str | None

    def order(self) -> tuple[int, int, int, int]:
        """Return the sort key: the longest last, and of equal ones the first."""
        return self.length, -self.rank, -self.agent, -self.start


def gpu_time(reading: Reading) -> Iterator[Summary]:
    """Return busy and idle time, the gap histogram, the largest gaps, and overlap.

    Raises:
        RocpdError: no operation with valid timestamps.
    """
    sums: dict[Key, _Sum] = {}
    largest: list[_Gap] = []
    for _, (sums_of_rank, gaps) in reading.each(partial(_of_rank, categories=load(reading.options.categories))):
        merge(sums, sums_of_rank)
        largest = heapq.nlargest(reading.options.top, [*largest, *gaps], key=_Gap.order)
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    if not any(agent.collectives for agent in sums.values()):
        reading.session.note("no communication kernels found")
    ordered = [(key, sums[key]) for key in sorted(sums, key=order_of)]
    has_span = reading.by is not By.MARKER  # what markers launch lies between what others do
    yield reading.summary(TABLES["gpu-time"], (_busy_row(*item, has_span) for item in ordered), By.AGENT)
    if has_span:
        gap_rows = (row for each in _gap_sums(reading, ordered) for row in _histogram(*each))
        yield reading.summary(TABLES["gaps"], gap_rows)
        yield Summary(TABLES["largest-gaps"], TABLES["largest-gaps"].fields, _largest_rows(reading, largest))
    if reading.by is By.STREAM:
        reading.session.note(
            "no overlap by stream: compute and communication run on different streams of an agent: --by agent"
        )
        return
    yield reading.summary(TABLES["overlap"], (_overlap_row(*item) for item in ordered), By.AGENT)


def _of_rank(reading: RankReading, categories: Categories) -> tuple[dict[Key, _Sum], list[_Gap]]:
    """Return the sums of the agents (by stream: the streams) of one rank, and its largest gaps."""
    names, base = OperationNames(), reading.window.base
    sums: dict[Key, _Sum] = {}
    largest: list[_Gap] = []
    for agent, on_lane, divisions in _lanes(reading, read_ops(reading, names)):
        lanes_work = _working(on_lane.within(base), split(on_lane, categories, names))
        for key, ops in divisions:
            gaps = ops.within(base).gaps(base)
            merge(sums, {key: _sum(ops, base, split(ops, categories, names), lanes_work, gaps.length)})
            most = np.argsort(-gaps.length, kind="stable")[: reading.options.top]
            for time, start, *around in zip(*(column[most].tolist() for column in gaps), strict=True):
                before, after = (names.texts[ops.name[row]] if row >= 0 else None for row in around)
                largest.append(_Gap(time, reading.rank.number, agent, start, before, after))
    return sums, heapq.nlargest(reading.options.top, largest, key=_Gap.order)


def _lanes(reading: RankReading, ops: Ops) -> Iterator[tuple[int, Ops, Iterable[tuple[Key, Ops]]]]:
    """Yield the agent of each lane, its operations, and divisions with theirs: the lane, or what was launched there.

    A stream is compared with itself.
    """
    by = reading.options.by
    if by not in LAUNCHES:
        for lane, agent, on_lane in all_lanes(reading, ops):
            yield agent, on_lane, [(key_of(by or By.AGENT, reading.rank, lane), on_lane)]
        return
    origins = read_origins(reading, by)
    for agent, on_agent in ops.lanes(By.AGENT):
        groups = grouped([origins.of_ops(on_agent)])
        yield agent, on_agent, [(origins.key(code), on_agent.take(rows)) for (code,), rows in groups]


def _working(ops: Ops, kinds: Mapping[str, Ints]) -> tuple[Union, Union]:
    """Return the time in which something computes, and in which something computes or communicates."""
    compute = ops.union(kinds["compute"])
    return compute, unite(compute, ops.union(kinds["communication"]))


def _sum(ops: Ops, base: Base | None, kinds: Mapping[str, Ints], around: tuple[Union, Union], gaps: Ints) -> _Sum:
    """Return the sum of one division of an agent.

    Args:
        ops: what was done.
        base: the window.
        kinds: kind -> numbers of the operations of this kind.
        around: what the lane did, as `_working` returns it.
        gaps: lengths of the times without operation [ns].
    """
    cut = ops.within(base)
    talking = kinds["communication"][ops.stream[kinds["communication"]] != NULL]
    streams = _computing_streams(ops, kinds["compute"])
    compute, communication, copy = (cut.union(kinds[kind]) for kind in ("compute", "communication", "copy"))
    return _Sum(
        operations=len(ops),
        collectives=len(kinds["communication"]),
        span=ops.span(base),
        busy=length(cut.union()),
        total=total(ops.duration),
        compute=length(compute),
        communication=length(communication),
        copy=length(copy),
        exposed=outside(communication, around[0]),
        exposed_copy=outside(copy, around[1]),
        gap=Spread.of(gaps),
        in_streams=total(ops.duration[talking]),
        in_computing_streams=total(ops.duration[talking[np.isin(ops.stream[talking], streams)]]),
    )


def _computing_streams(ops: Ops, compute: Ints) -> Ints:
    """Return the streams that have their share of the compute time; `compute` are the numbers of its kernels."""
    streams, of = np.unique(ops.stream[compute], return_inverse=True)
    times = np.bincount(of, ops.duration[compute], len(streams))
    chosen: Ints = streams[(times >= _COMPUTES * times.sum()) & (streams != NULL)]
    return chosen


def _busy_row(key: Key, s: _Sum, has_span: bool) -> Row:
    m = s.gap.moments
    if not has_span:
        return (*key, s.operations, None, s.busy, None, None, s.total, None, None, None, None, None)
    percent = s.busy * 100 / s.span if s.span else None
    idle = s.span - s.busy
    gaps = (m.timed, s.gap.quantile(0.5), m.longest, m.mean, idle * 100 / s.span if s.span else None)
    return (*key, s.operations, s.span, s.busy, idle, percent, s.total, *gaps)


def _overlap_row(key: Key, s: _Sum) -> Row:
    hidden = s.communication - s.exposed
    times = (s.busy, s.compute, s.communication, s.copy, hidden, s.exposed, s.exposed_copy)
    shares = (
        (hidden, s.communication),
        (s.exposed, s.communication),
        (s.exposed, s.busy),
        (s.in_computing_streams, s.in_streams),
    )
    return (*key, *times, *(part * 100 / base if base else None for part, base in shares))


def _gap_sums(reading: Reading, ordered: list[tuple[Key, _Sum]]) -> list[tuple[Key, Spread, int]]:
    """Return for each division its gaps, and the time of its agents [ns]."""
    if reading.by is not None:
        return [(key, agent.gap, agent.span) for key, agent in ordered]
    return [((), sum((agent.gap for _, agent in ordered), Spread()), sum(agent.span for _, agent in ordered))]


def _histogram(key: Key, gap: Spread, span: int) -> Iterator[Row]:
    values, counts = gap.distribution()
    sums = (values.astype(object) * counts) if total(values) > 1 << 40 else values * counts
    idle = int(sums.sum())
    edges = [edge * 1000 for edge in EDGES_US]
    cuts = [0, *np.searchsorted(values, edges, side="right").tolist(), len(values)]
    for low, high, label in zip(cuts[:-1], cuts[1:], _labels(), strict=True):
        count = int(counts[low:high].sum())
        length_ = int(sums[low:high].sum())
        longest = int(values[high - 1]) if high > low else None
        shares = (length_ * 100 / idle if idle else None, length_ / count if count else None)
        yield (*key, label, count, length_, longest, *shares, length_ * 100 / span if span else None)


def _labels() -> list[str]:
    texts = [f"{edge // 1000} ms" if edge >= 1000 else f"{edge} us" for edge in EDGES_US]
    return [f"up to {texts[0]}", *(f"{a} to {b}" for a, b in pairwise(texts)), f"over {texts[-1]}"]


def _largest_rows(reading: Reading, largest: list[_Gap]) -> Iterator[Row]:
    for gap in largest:
        agent = None if gap.agent == NULL else gap.agent
        yield (gap.rank, agent, reading.shift(gap.rank).to_line(gap.start), gap.length, gap.before, gap.after)
