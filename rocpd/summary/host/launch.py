"""Launching: how long operations queue after their call, and how long GPUs wait for the CPU.

The delay runs from the return of the call that launched an operation to its start; an operation that starts before
its call returns has none. A GPU waits for the CPU while it is idle and its next operation has not been launched.
Windows and filters select operations; calls are those of the whole trace: most operations at the start of a window
were launched before it.

How many operations wait on each agent over time: launched and not started. Pure but for the slices of time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import NULL, Floats, Ints, Row
from rocpd.facts.columns import distinct, grouped
from rocpd.facts.operations import (
    Links,
    OperationNames,
    Ops,
    all_lanes,
    functions_of,
    link,
    next_launches,
    read_ops,
    started,
)
from rocpd.facts.rank import Base, By, Key, Options, RankReading, key_of
from rocpd.facts.regions import counted_steps
from rocpd.facts.spread import Spread, total
from rocpd.facts.timeline import waiting
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.steps import is_step
from rocpd.summary.grouping import Sums, add, all_added, in_order, merge, most_first, nothing, percent, ratio, rows_of
from rocpd.summary.reading import AGENT, RANK, Reading, Tables
from rocpd.summary.result import Field, Picture, Summary, by_name, table_of

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
        title="Delay from launch to start",
    ),
    table_of(
        "bottleneck",
        "How long each agent waits for the CPU: one row per rank and agent unless --by says otherwise.",
        Field("operations", "", "kernels and copies", True),
        Field("launched", "", "those whose call is known", True),
        Field("launches", "", "calls that launched them", True),
        Field("launches_per_step", "", "launches by step markers of the rank, NULL without such markers"),
        Field("api_ns", "ns", "time in launching calls", True),
        Field("gpu_ns", "ns", "time of the operations", True),
        Field("span_ns", "ns", "first start to last end of each agent, all together; in a window its length"),
        Field("idle_ns", "ns", "span without operation"),
        Field("cpu_bound_ns", "ns", "idle, the next operation not launched yet"),
        Field("unknown_ns", "ns", "idle before operations whose call is unknown", True),
        Field("cpu_bound_percent", "%", "cpu_bound_ns by span_ns: the CPU is the bottleneck"),
    ),
    QUEUE_DEPTH,
)


_Depths = tuple[Floats, Ints, Floats]
"""The queue of one agent in each slice of time: mean, most, and share of the time without any [%]."""


def edges_of(reading: Reading) -> tuple[list[int], dict[int, Ints]]:
    """Return the edges of the slices, from the start of the time line, and by the clock of each rank [ns]."""
    start, end = reading.line()
    bins = max(1, min(reading.options.bins, end - start))
    edges = [start + (end - start) * number // bins for number in range(bins + 1)]
    of_line = np.array(edges, np.int64)
    return edges, {rank.number: reading.shift(rank.number).to_clock(of_line) for rank in reading.session.ranks}


def depths(launched: Ints, started: Ints, edges: Ints) -> _Depths:
    """Return the queue of an agent between edges [ns]; arguments as for `waiting`."""
    times, depth = waiting(launched, started)
    every = distinct(np.concatenate([edges, times[(times > edges[0]) & (times < edges[-1])]]))
    at = np.searchsorted(times, every[:-1], side="right") - 1
    held = np.where(at >= 0, np.append(depth, 0)[at], 0)
    length, of = np.diff(every), np.searchsorted(edges, every[:-1], side="right") - 1
    count, width = len(edges) - 1, np.maximum(np.diff(edges), 1)
    most = np.zeros(count, np.int64)
    np.maximum.at(most, of, held)
    mean, empty = (np.bincount(of, length * weight, count) for weight in (held, held == 0))
    return mean / width, most, empty * 100 / width


def queue_rows(edges: list[int], queues: Mapping[tuple[int, int], _Depths]) -> Iterator[Row]:
    """Yield the queue_rows of the table by rank and agent."""
    for rank, agent in sorted(queues):
        columns = (column.tolist() for column in queues[rank, agent])
        for at, *values in zip(edges, *columns, strict=False):
            yield (rank, None if agent == NULL else agent, at, *values)


_Delays = dict[Key, dict[str | None, Sums]]
"""Division -> name -> delays as a Spread, time in calls, time of operations [ns]."""

_Waiting = dict[Key, Sums]
"""Division -> the numbers of table `bottleneck`, but with steps in the place of launches by steps."""


def launch(reading: Reading) -> Tables:
    """Return delays by name, and how long agents wait for the CPU.

    Raises:
        RocpdError: no operation, or none whose call was recorded.
    """
    edges, of_clocks = edges_of(reading)
    work = partial(_read_launches, step=is_step(reading.options.step_marker))
    given = {rank: of_clock.tolist() for rank, of_clock in of_clocks.items()}
    yield (answers := reading.each(work, _LAUNCHING, given=given))
    sums, delays, queues = all_added(answers, 3, "kernels or copies")
    if not delays and any(operations for operations, *_ in sums.values()):
        raise nothing("operation has a call that launched it")
    yield reading.summary(TABLES["launch"], rows_of(delays, _delay_rows))
    rows = [(*key, *_sum_row(*of_key)) for key, of_key in in_order(sums)]
    by_agent = reading.asking(_by_agent(reading.options))
    yield by_agent.summary(TABLES["bottleneck"], rows, By.AGENT)
    yield Summary.whole(QUEUE_DEPTH, queue_rows(edges, queues))


_OfRank = tuple[_Waiting, _Delays, dict[tuple[int, int], _Depths]]

_LAUNCHING = Fact("launching", 1, (Sums, Spread))


def _read_launches(reading: RankReading, edges: Sequence[int], step: re.Pattern[str]) -> _OfRank:
    """Return how long the agents of one rank wait, the delays of operations, and how much waits on agents."""
    names = OperationNames()
    ops = read_ops(reading, names, stacks=True)
    links = link(reading.reader, ops)
    steps = sum(1 for _ in counted_steps(reading.reader, step))
    start = started(reading, ops)[links.linked]
    linked = ops.take(links.linked)
    delays = _delays(reading, names, linked, start, links)
    number = reading.rank.number
    queues = {
        (number, agent): depths(links.end[rows], start[rows], np.array(edges, np.int64))
        for (agent,), rows in grouped([linked.agent])
    }
    by_agent = replace(reading, options=_by_agent(reading.options))
    return _sums(by_agent, ops, links, steps), delays, queues


def _by_agent(options: Options) -> Options:
    """Return the question of tables that cannot be divided by calls: by agent."""
    return replace(options, by=None) if options.by is By.API else options


def _delays(reading: RankReading, names: OperationNames, ops: Ops, start: Ints, links: Links) -> _Delays:
    delays: _Delays = {}
    delay = np.maximum(start - links.end, 0)
    api = _api_times(links)
    lane, texts = ops.lane(reading.options.by), dict[int, str | None]()
    if reading.options.by is By.API:
        lane, texts = functions_of(reading.reader, links.call)
    for (name, number), rows in grouped([ops.name, lane]):
        of_name = Sums((Spread.of(delay[rows]), total(api[rows]), total(ops.duration[rows])))
        key = (texts.get(number),) if reading.options.by is By.API else reading.key(number)
        add(delays, key, names.texts[name], of_name)
    return delays


def _api_times(links: Links) -> Ints:
    """Return the time in calls that each operation stands for: the first one of its call for all of it."""
    return np.where(links.first, links.end - links.start, 0)


def _spread_out(ops: Ops, links: Links, values: Ints, otherwise: int = 0) -> Ints:
    """Return what operations whose call is known have, and what the others have instead."""
    column = np.full(len(ops), otherwise, np.int64)
    column[links.linked] = values
    return column


def _sums(reading: RankReading, ops: Ops, links: Links, steps: int) -> _Waiting:
    sums: _Waiting = {}
    by, base = reading.options.by, reading.window.base
    returned = _spread_out(ops, links, links.end, NULL)
    api, calls = (_spread_out(ops, links, column) for column in (_api_times(links), links.first.astype(np.int64)))
    following = next_launches(reading, base[1]) if base else {}
    for lane, _, rows in all_lanes(reading, ops):
        ran, at = ops.take(rows), returned[rows]
        key = key_of(by or By.AGENT, reading.rank, lane)
        counts = len(ran), int((at != NULL).sum()), int(calls[rows].sum())
        of_rank = 0 if key in sums else steps  # two agents of a rank go through the same steps
        times = total(api[rows]), total(ran.duration), ran.span(base)
        waiting = _waiting(ran, at, base, following.get(lane, 0))
        merge(sums, {key: Sums((*counts, of_rank, *times, *waiting))})
    return sums


def _waiting(ops: Ops, returned: Ints, base: Base | None, following: int) -> tuple[int, int, int]:
    """Return how long an agent was idle, how much of that before the next launch, and how much unknown [ns].

    Args:
        ops: what it did.
        returned: when the call of each returned, `NULL` where unknown.
        base: the window, if there is one.
        following: when the call of what it did after the window returned; 0: it did nothing.
    """
    gaps = ops.within(base).gaps(base)
    known = np.append(returned, following)[gaps.after]
    bound = np.minimum(gaps.length, known - gaps.start)
    unknown = gaps.length[known == NULL]
    return int(gaps.length.sum()), int(bound[bound > 0].sum()), int(unknown.sum())


def _delay_rows(key: Key, delays: Mapping[str | None, Sums]) -> Iterator[Row]:
    for name, (spread, api, gpu) in most_first(delays, lambda delay: delay[0].moments.total):
        m = spread.moments
        middle = (spread.quantile(0.5), spread.quantile(0.95))
        yield (*key, name, m.calls, m.total, m.mean, *middle, m.longest, api, gpu, ratio(api, gpu))


def _sum_row(operations: int, launched: int, launches: int, steps: int, *times: int) -> Row:
    *_, span, _, bound, _ = times
    return operations, launched, launches, ratio(launches, steps), *times, percent(bound, span)
