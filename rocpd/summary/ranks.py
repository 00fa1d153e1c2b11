"""Comparison of ranks: totals and their balance, collectives, steps, and a table of rank × time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.select.timeline import UNSHIFTED, Shift
from rocpd.frozen import frozen
from rocpd.summary import stragglers
from rocpd.summary.collectives_by_launch import collectives_by_launch
from rocpd.summary.findings import Finding
from rocpd.summary.intervals import covered, length, unite
from rocpd.summary.ops import KERNEL, OperationNames, Ops, read_ops, split
from rocpd.summary.options import GROUPS, LANES, LAUNCHES, By
from rocpd.summary.origins import launched_in
from rocpd.summary.reading import DIVISIONS, STATISTICS, Key, RankReading, Reading, key_of, order_of
from rocpd.summary.result import Field, Picture, Summary, TableDefinition, by_name
from rocpd.summary.slow_steps import Growth, growths
from rocpd.summary.spread import total
from rocpd.summary.steps import Steps
from rocpd.summary.stragglers import CommunicationTables, RankCommunication, communication_of, who
from rocpd.summary.sums import Total, merge
from rocpd.summary.verdict import Judgement
from rocpd.trace.collectives import listed
from rocpd.trace.kernel_categories import Categories, load
from rocpd.trace.steps import is_step
from rocpd.types import NULL, Floats, Ints

_MEASURES = ("elapsed_ns", "busy_ns", "compute_ns", "communication_ns", "copy_ns")

TABLES = by_name(
    TableDefinition(
        "ranks",
        "Totals of each rank (host, agent, stream). Times are unions over each agent: what runs at once counts once.",
        (
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
    ),
    TableDefinition(
        "imbalance",
        "How evenly ranks (or hosts, agents, streams) are loaded: largest by mean, 1 when all are equal.",
        (
            Field("measure", "", "column of the table of ranks"),
            Field("mean_ns", "ns", "mean"),
            Field("min_ns", "ns", "smallest", True),
            Field("min_rank", "", "its rank, NULL: several (--by host: min_hostname; agent, stream: the id follows)"),
            Field("max_ns", "ns", "largest"),
            Field("max_rank", "", "its rank, or as above"),
            Field("imbalance", "", "largest by mean"),
        ),
        title="Balance of ranks",
    ),
    *stragglers.TABLES.values(),
    TableDefinition(
        "steps",
        "Time of each step over all ranks, by marker; the longest first. A host takes as long as its longest rank.",
        (
            Field("step", "", "text of the marker"),
            Field("number", "", "which of this text, from 1", True),
            Field("at_ns", "ns", "start on the first rank that has it, from the start of the time line"),
            Field("ranks", "", "ranks (--by host: hosts) that have it", True),
            Field("mean_ns", "ns", "mean over these"),
            Field("min_ns", "ns", "shortest", True),
            Field("max_ns", "ns", "longest"),
            Field("spread_ns", "ns", "longest - shortest"),
            Field(
                "slowest_rank", "", "rank that was slow in it (--by host: slowest_hostname), as said below; NULL: none"
            ),
            Field("over_median", "", "mean_ns by the median of all steps; NULL: the window cuts it"),
            Field(
                "grew",
                "",
                "of a slow step: what grew most beside usual ones: compute, communication, copy or idle; else NULL",
                True,
            ),
            Field("grew_by_ns", "ns", "by how much", True),
            Field("grew_in", "", "kernel, or what the host did meanwhile, that grew most of it", True, is_kernel=True),
            Field("grew_rank", "", "the rank on which all but communication grew most", True),
        ),
        chart="rocpd.summary.plots:steps",
        picture=Picture("rocpd.summary.pictures:steps"),
    ),
    TableDefinition(
        "phases",
        "Markers whose texts differ in numbers only (# stands for them), over all ranks.",
        (
            Field("phase", "", "text"),
            Field("ranks", "", "ranks (--by host: hosts) that have it", True),
            *STATISTICS,
            Field("slowest_rank", "", "rank (--by host: slowest_hostname) with most time in it; NULL: several"),
            Field("imbalance", "", "its time by the mean of all"),
            Field("gpu_ns", "ns", "operations launched in it, by its thread, in steps by any: sum of durations"),
        ),
    ),
    TableDefinition(
        "heat",
        "Rank × time: what each does in each slice of the time line; a host: the mean of its ranks with GPU work.",
        (
            Field("at_ns", "ns", "start of the slice, from the start of the time line"),
            Field("slice_ns", "ns", "its length"),
            Field("busy_percent", "%", "time with any operation"),
            Field("compute_percent", "%", "time with compute"),
            Field("communication_percent", "%", "time with communication"),
        ),
        chart="rocpd.summary.plots:heat",
        picture=Picture("rocpd.summary.pictures:heat", is_all=True),
    ),
)


@frozen
class _Span:
    """First start and last end on the common time line [ns]; a span of nothing ends before it starts."""

    start: int = 0
    end: int = -1

    def __add__(self, other: _Span) -> _Span:
        spans = [span for span in (self, other) if span.start <= span.end]
        return _Span(min(s.start for s in spans), max(s.end for s in spans)) if spans else self

    def length(self) -> int:
        return max(0, self.end - self.start)


@frozen
class _Load(Total):
    """What a rank, host, agent or stream did: counts and times [ns]."""

    kernels: int
    copies: int
    span: _Span
    busy: int
    compute: int
    communication: int
    copy: int
    kernel_sum: int

    def times(self) -> tuple[int, ...]:
        """Return the values of `_MEASURES`."""
        return self.span.length(), self.busy, self.compute, self.communication, self.copy


class _Slices(NamedTuple):
    """Equal slices of the time line: start and width [ns], how many; rank -> what is added to its times."""

    start: int
    width: int
    number: int
    shifts: dict[int, Shift]


class _Rank(NamedTuple):
    """The answer of one rank: loads and shares of slices by division, communication, steps, what slow ones have."""

    loads: dict[Key, _Load]
    heat: dict[Key, Floats]
    communication: RankCommunication
    gpu: dict[str, int]
    growths: dict[tuple[str, int], Growth]


def ranks(reading: Reading) -> Iterator[Summary]:
    """Compare ranks, or hosts, agents, streams. Collectives and steps are left out, with a note, where there are none.

    Raises:
        RocpdError: no operation and no marker.
    """
    by = reading.by or By.RANK
    if by in LAUNCHES:
        yield from collectives_by_launch(reading, by)
        return
    categories, step = load(reading.options.categories), is_step(reading.options.step_marker)
    slices = _slices(reading)
    steps = Steps(by if by in GROUPS else By.RANK)
    loads: dict[Key, _Load] = {}
    heat: dict[Key, Floats] = {}
    working_ranks: Counter[Key] = Counter()
    communication: dict[int, RankCommunication] = {}
    for rank, answer in reading.each(
        partial(
            _of_rank,
            categories=categories,
            step=step,
            slices=slices,
            wanted=frozenset(filter(reading.wants, ("steps", "phases"))),
        )
    ):
        merge(loads, answer.loads)
        merge(heat, answer.heat)
        working_ranks.update(answer.heat.keys())
        communication[rank.number] = answer.communication
        steps.add(rank, answer.communication.steps, answer.gpu, slices.shifts.get(rank.number, UNSHIFTED))
        steps.add_growths(rank, answer.growths)
    if not any(load.kernels or load.copies for load in loads.values()) and not steps.phases:
        raise RocpdError("no kernels, copies or markers in the selection")
    communicating = stragglers.communication(reading, by, communication)
    working = _working(reading, by, loads)
    yield _ranks(reading, by, working, communicating)
    yield _imbalance(by, working, communicating.findings)
    yield from communicating.tables
    yield from _steps(reading, steps, communicating.judgement)
    if heat:
        yield _heat_table(reading, slices, heat, working_ranks)


def _slices(reading: Reading) -> _Slices:
    if not reading.session.time_range:
        return _Slices(0, 1, reading.options.bins, {})
    start, end = reading.line()
    width = max(1, -(-(end - start) // reading.options.bins))
    shifts = {rank.number: reading.shift(rank.number) for rank in reading.session.ranks}
    return _Slices(start, width, reading.options.bins, shifts)


def _of_rank(
    reading: RankReading, categories: Categories, step: re.Pattern[str], slices: _Slices, wanted: frozenset[str]
) -> _Rank:
    """Read what is compared of one rank; `wanted`: tables that take more than the others, and will be looked at."""
    names, by = OperationNames(), reading.options.by or By.RANK
    ops = read_ops(reading, names, stacks="phases" in wanted)
    lanes = ops.lanes(by) if by in LANES else [(NULL, ops)]
    loads, heat = {}, {}
    for lane, on_lane in lanes:
        key, rows_by_kind = key_of(by, reading.rank, lane), split(on_lane, categories, names)
        loads[key] = _load(on_lane, rows_by_kind, slices.shifts.get(reading.rank.number, UNSHIFTED))
        if len(on_lane):
            heat[key] = _heat(on_lane, rows_by_kind, slices, reading.rank.number)
    communication = communication_of(reading, ops, names, categories, step)
    gpu = launched_in(reading, ops) if "phases" in wanted and communication.steps.phases else {}
    grown: dict[tuple[str, int], Growth] = {}
    if "steps" in wanted:
        grown = growths(reading, ops, names, split(ops, categories, names), communication.steps.whole)
    return _Rank(loads, heat, communication, gpu, grown)


def _load(ops: Ops, rows_by_kind: Mapping[str, Ints], shift: Shift) -> _Load:
    times = {kind: _time(ops.take(rows)) for kind, rows in rows_by_kind.items()}
    copies = len(rows_by_kind["copy"])
    return _Load(
        kernels=len(ops) - copies,
        copies=copies,
        span=_Span(shift.to_line(int(ops.start.min())), shift.to_line(int(ops.end.max()))) if len(ops) else _Span(),
        busy=_time(ops),
        **times,
        kernel_sum=total(ops.duration[ops.kind == KERNEL]),
    )


def _time(ops: Ops) -> int:
    """Return the time in which agents run any of the operations, each for itself [ns]."""
    return sum(length(on_agent.union()) for _, on_agent in ops.lanes(By.AGENT))


def _heat(ops: Ops, rows_by_kind: Mapping[str, Ints], slices: _Slices, rank: int) -> Floats:
    """Return the percentages of each slice in which something is busy, computes and communicates."""
    edges = slices.shifts[rank].to_clock(slices.start + np.arange(slices.number + 1) * slices.width)
    compute, communication, copy = (ops.union(rows_by_kind[kind]) for kind in ("compute", "communication", "copy"))
    busy = unite(unite(compute, communication), copy)
    inside = [np.diff(covered(part, edges)) * 100 / slices.width for part in (busy, compute, communication)]
    return np.array(inside).T


def _working(reading: Reading, by: By, loads: Mapping[Key, _Load]) -> Mapping[Key, _Load]:
    """Return the loads of those that have GPU work; report the others, such as launchers."""
    working = {key: load for key, load in loads.items() if load.kernels or load.copies}
    idle = sorted((key for key in loads if key not in working), key=order_of)
    if not working or not idle:
        return loads
    if by is By.RANK:
        which = listed([cast("int", rank) for (rank,) in idle])
        reading.session.note(f"ranks without GPU work are left out of balance: {which}")
    return working


def _ranks(reading: Reading, by: By, loads: Mapping[Key, _Load], communicating: CommunicationTables) -> Summary:
    hosts = {rank.number: rank.hostname for rank in reading.session.ranks}
    is_one_job = loads and reading.session.runs == 1
    mean = sum(load.compute for load in loads.values()) / len(loads) if is_one_job else 0
    table = TABLES["ranks"]
    rows = []
    culprits = communicating.judgement.culprits if by is By.RANK else ()
    worst: dict[Key, int] = {(rank,): number for number, rank in enumerate(culprits)}
    for key in sorted(loads, key=lambda key: (worst.get(key, len(worst)), order_of(key))):
        load = loads[key]
        front = key if by in GROUPS else (*key, hosts[cast("int", key[0])])
        share = load.compute / mean if mean else None
        rows.append((*front, load.kernels, load.copies, *load.times(), load.kernel_sum, share))
    fields = table.fields[1:] if by in GROUPS else table.fields
    return Summary(table, (*DIVISIONS[by], *fields), rows, findings=communicating.findings)


def _imbalance(by: By, loads: Mapping[Key, _Load], findings: Sequence[Finding]) -> Summary:
    rows = []
    for number, measure in enumerate(_MEASURES):
        values = {key: loads[key].times()[number] for key in sorted(loads, key=order_of)}
        time = sum(values.values())
        if time:
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
        ranks = {rank.number: rank for rank in reading.session.ranks}
        named = {step: rank for step, rank in judgement.slowest.items() if rank is not None}
        slow = {step: key_of(steps.by, ranks[rank]) for step, rank in named.items()}
        yield Summary(TABLES["steps"], who(TABLES["steps"], steps.by), steps.step_rows(slow))
    else:
        reading.session.note("no step markers found; --step-marker REGEX says which markers are steps")
    if steps.phases:
        yield Summary(TABLES["phases"], who(TABLES["phases"], steps.by), steps.phase_rows())


def _heat_table(
    reading: Reading, slices: _Slices, heat: Mapping[Key, Floats], working_ranks: Mapping[Key, int]
) -> Summary:
    rows = [
        (*key, slices.start + index * slices.width, slices.width, *shares)
        for key in sorted(heat, key=order_of)
        for index, shares in enumerate((heat[key] / working_ranks[key]).tolist())
    ]
    return reading.summary(TABLES["heat"], rows, By.RANK)
