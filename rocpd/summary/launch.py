"""Owns launching: how long operations queue behind their call, and how long GPUs wait for the CPU.

The delay runs from the return of the call that launched an operation to its start; an operation that starts before
its call returns has none. A GPU waits for the CPU while it is idle and its next operation has not been launched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.links import Links, link
from rocpd.summary.ops import Names, Ops, read_ops
from rocpd.summary.options import By
from rocpd.summary.read import NULL, grouped
from rocpd.summary.reading import DIVISIONS, Key, Reading, order_of
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.spread import Ints, Spread
from rocpd.summary.steps import is_step, ranges

TABLES = {
    table.name: table
    for table in (
        Table(
            "launch",
            "Delay from launch to start, by what was launched; the largest sum of delays first.",
            (
                Field("name", "", "kernel or direction of a copy"),
                Field("launched", "", "operations whose call is known", True),
                Field("delay_ns", "ns", "sum of delays"),
                Field("mean_delay_ns", "ns", "mean delay", True),
                Field("median_delay_ns", "ns", "median delay"),
                Field("p95_delay_ns", "ns", "95th percentile", True),
                Field("max_delay_ns", "ns", "longest delay"),
                Field(
                    "api_ns", "ns", "time in the calls; one that starts several operations counts for its first", True
                ),
                Field("gpu_ns", "ns", "time of the operations", True),
                Field("api_by_gpu", "", "api_ns by gpu_ns: above 1 launching takes longer than running"),
            ),
        ),
        Table(
            "bottleneck",
            "How long each agent waits for the CPU: one row per rank and agent unless --by says otherwise.",
            (
                Field("operations", "", "kernels and copies", True),
                Field("launched", "", "those whose call is known", True),
                Field("launches", "", "calls that launched them", True),
                Field("launches_per_step", "", "launches by step markers of the rank, NULL without such markers"),
                Field("api_ns", "ns", "time in launching calls", True),
                Field("gpu_ns", "ns", "time of the operations", True),
                Field("span_ns", "ns", "first start to last end"),
                Field("idle_ns", "ns", "span without operation"),
                Field("cpu_bound_ns", "ns", "idle, the next operation not launched yet"),
                Field("unknown_ns", "ns", "idle before operations whose call is unknown", True),
                Field("cpu_bound_percent", "%", "cpu_bound_ns by span_ns: the CPU is the bottleneck"),
            ),
        ),
    )
}


@dataclass
class _Sum:
    operations: int = 0
    launched: int = 0
    launches: int = 0
    steps: int = 0
    api: int = 0
    gpu: int = 0
    span: int = 0
    idle: int = 0
    bound: int = 0
    unknown: int = 0

    def __iadd__(self, other: _Sum) -> _Sum:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
        return self


@dataclass
class _Delay:
    spread: Spread = field(default_factory=Spread)
    api: int = 0
    gpu: int = 0


def launch(reading: Reading) -> Iterator[Summary]:
    """Give delays by name, and how long agents wait for the CPU.

    Raises:
        RocpdError: no operation, or none whose call was recorded.
    """
    names = Names()
    delays: dict[Key, dict[int, _Delay]] = {}
    sums: dict[Key, _Sum] = {}
    for rank in reading.ranks():
        ops = read_ops(reading, rank, names, stacks=True)
        links = link(reading, rank, ops)
        _add_delays(reading, rank, (ops, links), delays)
        _add_sums(reading, rank, (ops, links), sums)
    if not sums:
        raise RocpdError("no kernels or copies in the selection")
    if not delays:
        raise RocpdError("no operation has a call that launched it in the selection", "were API calls traced?")
    yield reading.summary(TABLES["launch"], _delay_rows(delays, names))
    front = DIVISIONS[reading.by or By.AGENT]
    rows = [(*key, *_sum_row(sums[key])) for key in sorted(sums, key=order_of)]
    yield Summary(TABLES["bottleneck"], (*front, *TABLES["bottleneck"].fields), rows)


def _add_delays(reading: Reading, rank: Rank, found: tuple[Ops, Links], delays: dict[Key, dict[int, _Delay]]) -> None:
    ops, links = found[0].take(found[1].linked), found[1]
    delay = np.maximum(ops.start - links.end, 0)
    api = np.where(links.first, links.end - links.start, 0)
    lane = _lane(reading, ops)
    for (name, place), rows in grouped([ops.name, lane]):
        own = delays.setdefault(reading.key(rank, place, place), {}).setdefault(name, _Delay())
        own.spread.add(delay[rows])
        own.api += int(api[rows].sum())
        own.gpu += int(ops.duration[rows].sum())


def _lane(reading: Reading, ops: Ops) -> Ints:
    if reading.by is By.AGENT:
        return ops.agent
    return ops.stream if reading.by is By.STREAM else np.zeros(len(ops), np.int64)


def _add_sums(reading: Reading, rank: Rank, found: tuple[Ops, Links], sums: dict[Key, _Sum]) -> None:
    ops, links = found
    submitted = np.full(len(ops), NULL, np.int64)
    submitted[links.linked] = links.end
    api = np.zeros(len(ops), np.int64)
    api[links.linked] = np.where(links.first, links.end - links.start, 0)
    calls = np.zeros(len(ops), np.int64)
    calls[links.linked] = links.first
    pattern = is_step(reading.options.step_marker)
    steps = sum(bool(pattern.search(text)) for text, _, _ in ranges(reading, rank))
    lane = ops.stream if reading.by is By.STREAM else ops.agent
    for (place,), rows in grouped([lane]):
        key = (rank.number, None if place == NULL else place) if reading.by is None else reading.key(rank, place, place)
        own = ops.take(rows)
        idle, bound, unknown = _waiting(own, submitted[rows])
        sums.setdefault(key, _Sum())
        sums[key] += _Sum(
            operations=len(own),
            launched=int((submitted[rows] != NULL).sum()),
            launches=int(calls[rows].sum()),
            steps=steps,
            api=int(api[rows].sum()),
            gpu=int(own.duration.sum()),
            span=int(own.end.max() - own.start.min()),
            idle=idle,
            bound=bound,
            unknown=unknown,
        )


def _waiting(ops: Ops, submitted: Ints) -> tuple[int, int, int]:
    """Give how long an agent was idle, how much of that before the next launch, and how much nobody knows [ns]."""
    order = np.lexsort((ops.end, ops.start))
    start, submitted = ops.start[order], submitted[order]
    latest = np.maximum.accumulate(ops.end[order])
    places = np.flatnonzero(start[1:] > latest[:-1]) + 1
    begin, end, known = latest[places - 1], start[places], submitted[places]
    unknown = int((end - begin)[known == NULL].sum())
    bound = np.minimum(end, known) - begin
    return int((end - begin).sum()), int(bound[bound > 0].sum()), unknown


def _delay_rows(delays: dict[Key, dict[int, _Delay]], names: Names) -> Iterator[Row]:
    for key in sorted(delays, key=order_of):
        found = [(names.texts[name], own, own.spread.moments) for name, own in delays[key].items()]
        for name, own, m in sorted(found, key=lambda item: (-item[2].total, item[0] or "")):
            middle = (own.spread.quantile(0.5), own.spread.quantile(0.95))
            ratio = own.api / own.gpu if own.gpu else None
            yield (*key, name, m.calls, m.total, m.mean, *middle, m.longest, own.api, own.gpu, ratio)


def _sum_row(s: _Sum) -> Row:
    per_step = s.launches / s.steps if s.steps else None
    share = s.bound * 100 / s.span if s.span else None
    counts = (s.operations, s.launched, s.launches, per_step)
    return (*counts, s.api, s.gpu, s.span, s.idle, s.bound, s.unknown, share)
