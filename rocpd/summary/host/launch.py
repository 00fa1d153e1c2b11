"""Launching: the delay of operations after their call, and the time that GPUs wait for the CPU.

The delay runs from the return of the call that launched an operation to its start; it is 0 for an operation that starts
before its call returns. A GPU waits for the CPU while it is idle and its next operation has not been launched. The
delay of the operation that ends such a wait is the latency of launching, as nothing queues before it. Start-up and
warm-up do not count. Windows and filters select operations; calls are those of the whole trace, as most operations at
the start of a window were launched before it.

Also the number of operations that wait on each agent over time: launched but not started. Pure but for the slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, Row
from rocpd.facts.agent_time import HOST, QUEUED, UNKNOWN, AgentTime, cause_code, read_agent_times, read_history
from rocpd.facts.columns import distinct, grouped
from rocpd.facts.operations import (
    COPY,
    Links,
    OperationNames,
    Ops,
    functions_of,
    kinds_of,
    link,
    read_ops,
    rows_within,
    started,
)
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.facts.regions import HostCall, counted_steps
from rocpd.facts.spread import Spread, total
from rocpd.facts.timeline import waiting
from rocpd.facts.units import RankTime, read_first
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.steps import is_step
from rocpd.summary import grouping
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.reading import AGENT, RANK, Reading, Tables
from rocpd.summary.result import Field, Picture, Summary, by_name, table_of
from rocpd.table.human import readable

_BOUND = 5.0  # percent of the time that GPUs wait, below which the host is no bound
_LAUNCHING_HOST, _HOST, _UNKNOWN = (
    [cause_code(cause) for cause in causes]
    for causes in ([HostCall.LAUNCH.value], [*map(str, HostCall), HOST], [UNKNOWN])
)
"""Causes of idle time: launches, all work of the host, and unknown calls."""

QUEUE_DEPTH = table_of(
    "queue-depth",
    "How many operations are launched and have not started, for each agent over time.",
    RANK,
    AGENT,
    Field("at_ns", "ns", "start of the slice, from the start of the time line"),
    Field("mean_depth", "", "operations that wait, the mean over the slice"),
    Field("max_depth", "", "most of them at a time"),
    Field("empty_percent", "%", "time in which none waits"),
    chart="rocpd.summary.plots:queue_depth",
    picture=Picture("rocpd.summary.pictures:queue_depth", is_all=True),
)

TABLES = by_name(
    table_of(
        "launch",
        "Delay from launch to start, by what was launched; the largest sum of delays first.",
        Field("name", "", "kernel or direction of a copy", is_kernel=True),
        Field("launched", "", "operations whose call is known", True),
        Field("delay_ns", "ns", "sum of delays"),
        Field("mean_delay_ns", "ns", "mean delay", True),
        Field("median_delay_ns", "ns", "median delay"),
        Field("p95_delay_ns", "ns", "95th percentile", True),
        Field("max_delay_ns", "ns", "longest delay"),
        Field("api_ns", "ns", "time in the calls; one that starts several operations counts for its first", True),
        Field("gpu_ns", "ns", "time of the operations", True),
        Field("api_by_gpu", "", "api_ns by gpu_ns: above 1 launching takes longer than running"),
        Field("onto_idle", "", "kernels launched while their agent was idle, with nothing else to start", True),
        Field("idle_delay_ns", "ns", "median delay of these: time of launching itself, without queueing"),
        title="Delay from launch to start",
    ),
    table_of(
        "bottleneck",
        "How long each agent waits for the CPU: one row per rank and agent unless --by says otherwise.",
        Field("operations", "", "kernels and copies", True),
        Field("launched", "", "those whose call is known", True),
        Field("launches", "", "calls that launched them", True),
        Field("launches_per_step", "", "launches by steps of the rank that count, NULL without step markers"),
        Field("api_ns", "ns", "time in launching calls", True),
        Field("gpu_ns", "ns", "time of the operations", True),
        Field("span_ns", "ns", "time of agents that counts: steps, else the active part; in a window its length"),
        Field("idle_ns", "ns", "span without operation"),
        Field("cpu_bound_ns", "ns", "idle, the next operation not launched yet"),
        Field("unknown_ns", "ns", "idle before operations whose call is unknown", True),
        Field("cpu_bound_percent", "%", "cpu_bound_ns by span_ns: the CPU is the bottleneck"),
    ),
    QUEUE_DEPTH,
)


_Depths = tuple[Floats, Ints, Floats]
"""The queue of one agent in each slice of time: mean, most, and share of the time when it is empty [%]."""


def edges_of(reading: Reading) -> tuple[list[int], dict[int, Ints]]:
    """Return the edges of the slices [ns]: from the start of the time line, and by the clock of each rank."""
    start, end = reading.line()
    bins = max(1, min(reading.options.bins, end - start))
    edges = [start + (end - start) * number // bins for number in range(bins + 1)]
    of_line = np.array(edges, np.int64)
    return edges, {rank.number: reading.shift(rank.number).to_clock(of_line) for rank in reading.session.ranks}


def depths(launched: Ints, started: Ints, edges: Ints) -> _Depths:
    """Return the queue of an agent between edges [ns]; arguments as for `waiting`."""
    times, depth = waiting(launched, started)
    moments = distinct(np.concatenate([edges, times[(times > edges[0]) & (times < edges[-1])]]))
    at = np.searchsorted(times, moments[:-1], side="right") - 1
    held = np.where(at >= 0, np.append(depth, 0)[at], 0)
    length, of = np.diff(moments), np.searchsorted(edges, moments[:-1], side="right") - 1
    count, width = len(edges) - 1, np.maximum(np.diff(edges), 1)
    most = np.zeros(count, np.int64)
    np.maximum.at(most, of, held)
    mean, empty = (np.bincount(of, length * weight, count) for weight in (held, held == 0))
    return mean / width, most, empty * 100 / width


def queue_rows(edges: list[int], queues: Mapping[tuple[int, int], _Depths]) -> Iterator[Row]:
    """Yield the rows of the table of queues, by rank and agent."""
    for rank, agent in sorted(queues):
        columns = (column.tolist() for column in queues[rank, agent])
        for at, *values in zip(edges, *columns, strict=False):
            yield (rank, None if agent == NULL else agent, at, *values)


_Delays = dict[Key, dict[str | None, grouping.Sums]]
"""Division -> name -> delays as a Spread, time in calls, time of operations [ns], and delays on idle agents."""

_Waiting = dict[Key, grouping.Sums]
"""Division -> the numbers of table `bottleneck`, with the number of steps in place of launches per step."""


def launch(reading: Reading) -> Tables:
    """Return delays by name, and the time that agents wait for the CPU.

    Raises:
        RocpdError: there are no operations, or none whose call was recorded.
    """
    read_first(reading.session, reading.options.step_marker)
    edges, of_clocks = edges_of(reading)
    times = reading.asking(replace(reading.options, by=By.AGENT)).times()
    work = partial(_read_launches, step=is_step(reading.options.step_marker))
    given = {rank: (of_clock.tolist(), times.get(rank)) for rank, of_clock in of_clocks.items()}
    sums, delays, queues, spent = yield from reading.summed(work, _LAUNCHING, given=given, what="kernels or copies")
    if not delays and any(operations for operations, *_ in sums.values()):
        raise grouping.nothing("operation has a call that launched it")
    findings = list(_findings(delays, spent))
    yield reading.summary(TABLES["launch"], grouping.rows_of(delays, _delay_rows), findings=findings)
    rows = [(*key, *_sum_row(*of_key)) for key, of_key in grouping.in_order(sums)]
    by_agent = reading.asking(replace(reading.options, by=_lanes(reading.by)))
    yield by_agent.summary(TABLES["bottleneck"], rows, By.AGENT, findings)
    yield Summary.whole(QUEUE_DEPTH, partial(queue_rows, edges, queues))  # a thousand ranks have 50,000 rows


def _findings(delays: _Delays, spent: Mapping[tuple[int, int], grouping.Sums]) -> Iterator[Finding]:
    """Yield a finding on the time that GPUs wait for launches and for the host, and on the latency of launching."""
    shares = {agent: (launching * 100 / time, host * 100 / time) for agent, (launching, host, time) in spent.items()}
    if not shares:
        return
    launching, host, time = (sum(column) for column in zip(*spent.values(), strict=True))
    launches, waits = launching * 100 / time, host * 100 / time
    is_bound = launches >= _BOUND and launches * 2 >= waits
    says = (
        "launch-bound" if is_bound else "host-bound, mostly not by launches" if waits >= _BOUND else "not launch-bound"
    )
    text = f"{says}: GPUs wait {launches:.1f} % of the time for launches, {waits:.1f} % for all that the host does"
    (rank, _), (_, most) = max(shares.items(), key=lambda share: share[1][1])
    text += f", {most:.1f} % on rank {rank}" if most >= max(2 * waits, _BOUND) else ""
    usual, median = (
        Spread.sum(of_name[at] for of_key in delays.values() for of_name in of_key.values()).quantile(0.5)
        for at in (0, -1)
    )
    if usual is not None:
        alone = "" if median is None else f", a kernel on an idle GPU {_after(median)}"
        text += f"; usually an operation starts {_after(usual)}{alone} (median)"
    evidence = {"launching_percent": launches, "host_percent": waits, "delay_ns": usual, "idle_delay_ns": median}
    verdict = Verdict.PROBLEM if waits >= _BOUND else Verdict.NONE
    yield Finding(text, "launch.bound", verdict, Confidence.CERTAIN, evidence=evidence)


def _after(delay: float) -> str:
    return f"{readable(delay, 'ns')} after its launch" if delay else "before its call returns"


_OfRank = tuple[_Waiting, _Delays, dict[tuple[int, int], _Depths], dict[tuple[int, int], grouping.Sums]]

_LAUNCHING = Fact("launching", 3, (grouping.Sums, Spread))


def _read_launches(
    reading: RankReading, given: tuple[Sequence[int], RankTime | None], step: re.Pattern[str]
) -> _OfRank:
    """Return the waiting time of the agents of one rank, the delays of operations, and the queues of agents.

    Then, for each agent, its time of waiting for launches, for all work of its host, and all its time [ns].
    """
    (edges, time), names, options = given, OperationNames(), reading.options
    by_agent, by_lane = (replace(reading, options=replace(options, by=by)) for by in (By.AGENT, _lanes(options.by)))
    read_history(reading)  # reads all columns of regions, some of which links need
    ops = read_ops(reading, names, stacks=True)
    links, start = link(reading.reader, ops), started(reading, ops)
    returned = _spread_out(ops, links, links.end, NULL)
    queues = {
        (reading.rank.number, agent): depths(returned[rows], start[rows], np.array(edges, np.int64))
        for (agent,), rows in grouped([ops.agent])
    }
    kinds = kinds_of(ops, load(options.categories), names)
    of_agents, of_lanes = (read_agent_times(each, time, ops, kinds, causes=True) for each in (by_agent, by_lane))
    counts, alone = _onto_idle(of_agents, ops)
    delays = _delays(reading, names, ops, start, links.take(counts[links.linked]), alone)
    steps = time.steps if time and time.steps else sum(1 for _ in counted_steps(reading.reader, step))
    waits = {
        (reading.rank.number, spent.agent): grouping.Sums(_waits(spent, _LAUNCHING_HOST, _HOST)) for spent in of_agents
    }
    return _sums(by_lane, of_lanes, ops, links, steps), delays, queues, waits


def _lanes(by: By | None) -> By | None:
    """Return the division of tables that cannot be divided by calls: agents instead."""
    return None if by is By.API else by


def _waits(spent: AgentTime, *causes: Sequence[int]) -> list[int]:
    """Return the idle time of an agent for each group of causes, and all its time [ns]."""
    return [*(total(spent.length[np.isin(spent.cause, some)]) for some in causes), total(spent.length)]


def _onto_idle(times: Iterable[AgentTime], ops: Ops) -> tuple[Flags, Ints]:
    """Return which operations count, and the delays of kernels launched onto an idle agent; `NULL` for others.

    Calls that copy may return only when the copy is done: their delay is no latency.
    """
    counts, delay = np.zeros(len(ops), bool), np.full(len(ops), NULL)
    for spent in times:
        counts[rows_within(ops, By.AGENT, spent.lane, spent.span)] = True
        first = ((spent.operation[1:] >= 0) & (spent.operation[:-1] < 0)).nonzero()[0] + 1
        queued = spent.cause[first - 1] == cause_code(QUEUED)
        after_host = np.isin(spent.cause[np.maximum(first - 1 - queued, 0)], _HOST)
        delay[spent.operation[first[after_host]]] = np.where(queued, spent.length[first - 1], 0)[after_host]
    delay[ops.kind == COPY] = NULL
    return counts, delay


def _delays(reading: RankReading, names: OperationNames, ops: Ops, start: Ints, links: Links, alone: Ints) -> _Delays:
    delays: _Delays = {}
    ops, start, alone = ops.take(links.linked), start[links.linked], alone[links.linked]
    delay = np.maximum(start - links.end, 0)
    api = _api_times(links)
    lane, texts = ops.lane(reading.options.by), dict[int, str | None]()
    if reading.options.by is By.API:
        lane, texts = functions_of(reading.reader, links.call)
    for (name, number), rows in grouped([ops.name, lane]):
        onto_idle = Spread.of(alone[rows][alone[rows] != NULL])
        of_name = grouping.Sums((Spread.of(delay[rows]), total(api[rows]), total(ops.duration[rows]), onto_idle))
        key = (texts.get(number),) if reading.options.by is By.API else reading.key(number)
        grouping.add(delays, key, names.texts[name], of_name)
    return delays


def _api_times(links: Links) -> Ints:
    """Return the time in calls of each operation; all time of a call goes to its first operation."""
    return np.where(links.first, links.end - links.start, 0)


def _spread_out(ops: Ops, links: Links, values: Ints, otherwise: int = 0) -> Ints:
    """Return a column with the values of operations whose call is known, and another value for the others."""
    column = np.full(len(ops), otherwise, np.int64)
    column[links.linked] = values
    return column


def _sums(reading: RankReading, times: Iterable[AgentTime], ops: Ops, links: Links, steps: int) -> _Waiting:
    sums: _Waiting = {}
    by = reading.options.by
    linked = _spread_out(ops, links, np.ones(len(links.linked), np.int64))
    api, calls = (_spread_out(ops, links, column) for column in (_api_times(links), links.first.astype(np.int64)))
    for spent in times:
        rows = rows_within(ops, by, spent.lane, spent.span)
        key = key_of(by or By.AGENT, reading.rank, spent.lane)
        counts = len(rows), total(linked[rows]), total(calls[rows])
        of_rank = 0 if key in sums else steps  # the agents of a rank go through the same steps
        bound, unknown, span = _waits(spent, _HOST, _UNKNOWN)
        waits = total(api[rows]), total(ops.duration[rows]), span, total(spent.idle().length), bound, unknown
        grouping.merge(sums, {key: grouping.Sums((*counts, of_rank, *waits))})
    return sums


def _delay_rows(key: Key, delays: Mapping[str | None, grouping.Sums]) -> Iterator[Row]:
    for name, (spread, api, gpu, alone) in grouping.most_first(delays, lambda delay: delay[0].moments.total):
        m = spread.moments
        middle = (spread.quantile(0.5), spread.quantile(0.95))
        onto_idle = (alone.calls, alone.quantile(0.5))
        yield (*key, name, m.calls, m.total, m.mean, *middle, m.longest, api, gpu, grouping.ratio(api, gpu), *onto_idle)


def _sum_row(operations: int, launched: int, launches: int, steps: int, *times: int) -> Row:
    *_, span, _, bound, _ = times
    return operations, launched, launches, grouping.ratio(launches, steps), *times, grouping.percent(bound, span)
