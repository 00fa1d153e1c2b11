"""Totals of events by name; for kernels also by category, by the marker around their launch, and by launched shape.

All numbers are exact over all ranks, medians and percentiles too. Joins stay inside a rank; ranks are added up in
Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import NULL, Ints, Row, UsageError, by_key, frozen, percent_text
from rocpd.facts import operations
from rocpd.facts.columns import (
    Names,
    Select,
    as_text,
    batches,
    group_rows,
    grouped,
    number,
    per_id,
    read_before,
    statement,
)
from rocpd.facts.occupancy import GpuLimits, KernelNeeds, waves_per_simd
from rocpd.facts.places import Origins, read_origins
from rocpd.facts.rank import LANES, LAUNCHES, By, Key, RankReading
from rocpd.facts.short_names import kernel_name
from rocpd.facts.spread import Spread, counts_of, spreads_by_group, total
from rocpd.facts.timeline import covered, union
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.categories import OF_PROGRAMS, domain_of, is_marker
from rocpd.schema.rules.events import VALID_TIMES, valid_times
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.summary import grouping
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.reading import AGENT, DIVISIONS, PERCENT, RANK, STATISTICS, RankAnswers, Reading, Tables, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name, table_of
from rocpd.table.human import readable

_BYTES = Field("bytes", "bytes", "bytes of the events with valid timestamps")
_RATE = Field("gib_per_s", "GiB/s", "bytes by time, in 2^30 bytes per second")


def _table(name: str, doc: str, *first: Field, last: tuple[Field, ...] = ()) -> TableDefinition:
    percent = replace(PERCENT, minor=bool(last))  # bytes matter more
    return table_of(name, doc, *first, *STATISTICS, percent, *last)


_KERNELS = _table("kernels", "Kernel dispatches by kernel.", Field("name", "", "kernel", is_kernel=True))

_COPIES = _table(
    "copies",
    "Memory copies by direction, those of start-up too.",
    Field("name", "", "direction", is_kernel=True),
    last=(_BYTES, _RATE),
)

_LOW = 0.05  # quantile that stands for the fastest run, which alone may be an accident

TABLES = by_name(
    replace(_KERNELS, title="Time by kernel", chart="rocpd.summary.plots:kernels"),
    replace(_COPIES, title="Time of copies by direction"),
    _table(
        "allocations",
        "Allocations and frees without scratch memory.",
        Field("name", "", "operation: ALLOC, FREE …"),
        Field("level", "", "REAL or VIRTUAL memory"),
        last=(_BYTES,),
    ),
    _table("scratch", "Scratch memory by operation.", Field("name", "", "operation"), last=(_BYTES,)),
    _table(
        "api",
        "API calls of every domain by function; percent is of all API time.",
        Field("domain", "", "HIP, HSA, RCCL …", has_colour=True),
        Field("name", "", "function"),
    ),
    _table("markers", "Marker ranges and marks by message.", Field("name", "", "message")),
    _table(
        "domains", "Events by domain; CPU and GPU time side by side.", Field("domain", "", "domain", has_colour=True)
    ),
    table_of(
        "categories",
        "Kernels by what they do, as a file of regular expressions says.",
        Field("category", "", "category", has_colour=True),
        Field("kernels", "", "different kernels"),
        *STATISTICS,
        PERCENT,
    ),
    table_of(
        "unmatched",
        "Kernels that no expression matches.",
        Field("name", "", "kernel", is_kernel=True),
        Field("calls", "", "dispatches"),
        Field("total_ns", "ns", "sum of durations"),
        Field("percent", "%", "share of the time of all kernels", is_share=True),
    ),
    table_of(
        "marker-kernels",
        "Kernels by the path of marker ranges around their launch, and by agent; those with most time first.",
        *DIVISIONS[By.MARKER],
        RANK,
        AGENT,
        Field("name", "", "kernel", is_kernel=True),
        *(replace(field, minor=field.minor or field.name == "median_ns") for field in STATISTICS),
        Field("percent", "%", "share of the time of kernels of the marker on the agent", True, is_share=True),
    ),
    table_of(
        "kernel-shapes",
        "Kernels by what they are launched with, and how much of a GPU that can fill; most time first.",
        Field("name", "", "kernel", is_kernel=True),
        Field("grid", "", "work-items in x, y and z"),
        Field("workgroup", "", "work-items per work-group in x, y and z"),
        Field("calls", "", "dispatches"),
        Field("total_ns", "ns", "sum of durations"),
        Field("percent", "%", "share of the time of all kernels", True, is_share=True),
        Field("groups", "", "work-groups of the grid; NULL where it is not recorded", True),
        Field("compute_units", "", "of the agent", True),
        Field("vector_registers", "", "of a work-item, architectural and accumulation ones", True),
        Field("lds_bytes", "bytes", "LDS of a work-group", True),
        Field("scratch_bytes", "bytes", "scratch of a work-item: above 0 registers spill, or arrays lie there", True),
        Field("waves_per_simd", "", "waves that fit on a SIMD unit; NULL where the architecture is not known"),
        Field("limited_by", "", "the resource that limits them: waves, registers or LDS", True),
        Field("median_ns", "ns", "median duration", True),
        Field("unstable_ns", "ns", "time above the 5th percentile up to the median, of all calls, on each GPU", True),
        Field("first_ns", "ns", "duration of the first run, the longest of all GPUs", True),
        Field(
            "beside_ns",
            "ns",
            "runs beside communication, their median above that of runs alone; NULL: not both are",
            True,
        ),
    ),
)

_DURATION = f'CASE WHEN {VALID_TIMES} THEN "end" - start ELSE -1 END'


@frozen
class _Layout:
    """The columns in the `.sql` file of a kind besides `start` and `end`.

    Args:
        keys: columns by which events are counted.
        base: table with these events, whose `id` is a column, too; None: they come from several tables.
        by_text: whether the keys are texts; else they are ids.
        has_lanes: whether there are columns `agent` and `stream`.
        has_sizes: whether there is a column `size` [bytes].
    """

    keys: tuple[str, ...]
    base: str | None = None
    by_text: bool = False
    has_lanes: bool = True
    has_sizes: bool = False


_CATEGORISED = ("name", "category")
_TIMES = ("start", "end")

_LAYOUTS = {
    "kernels": _Layout(("name",), "rocpd_kernel_dispatch"),
    "memory_copies": _Layout(("name",), "rocpd_memory_copy", has_sizes=True),
    "memory_allocations": _Layout(("name", "detail"), "rocpd_memory_allocate", by_text=True, has_sizes=True),
    "scratch_memory": _Layout(("name", "detail"), "rocpd_memory_allocate", by_text=True, has_sizes=True),
    "regions": _Layout(_CATEGORISED, "rocpd_region", has_lanes=False),
    "markers": _Layout(("name",), by_text=True, has_lanes=False),
}

KINDS = tuple(_LAYOUTS)
"""Kinds of events that AMD's tables hold; each has a `.sql` file."""


_LAYOUTS |= {
    "graph_launches": _Layout(_CATEGORISED, "rocpd_graph_launch"),
    "samples": _Layout(_CATEGORISED, "rocpd_sample", has_lanes=False),
}


ALL_KINDS = tuple(_LAYOUTS)
"""All kinds of events that have a time."""


class Label(NamedTuple):
    """The names by which events are counted.

    Args:
        category: event category, or that of the kind (`KERNELS`).
        name: kernel, direction, operation, function or message.
        detail: level of an allocation, else None.
        division: values of the columns of the division.
        full: full name of a kernel, whatever the form of `name`; else None.
    """

    category: str | None
    name: str | None
    detail: str | None
    division: Key
    full: str | None = None

    @property
    def domain(self) -> str:
        """The domain of the category."""
        return domain_of(self.category)


class EventsByGroup(NamedTuple):
    """Events, grouped: the events of a group are next to each other.

    Args:
        durations: durations [ns]; -1 with invalid timestamps.
        sizes: sizes [bytes]; None if the kind has none.
        first: place of the first event of each group.
    """

    durations: Ints
    sizes: Ints | None
    first: Ints


def totals_by_label(
    reading: RankReading, kind: str, add_up: Callable[[EventsByGroup], Sequence[grouping.Value]]
) -> dict[Label, grouping.Value]:
    """Return the sums of the events of one rank by label.

    Args:
        reading: reads the rank.
        kind: one of `ALL_KINDS`.
        add_up: returns the sum of each group of some events.
    """
    by = reading.options.by
    origins = read_origins(reading, by) if by in LAUNCHES else None
    lane = by if by in (*LANES, *LAUNCHES) else None
    names, sums = reading.reader.once((kind, add_up, lane), lambda: _sums_by_key(reading, kind, add_up, origins))
    totals: dict[Label, grouping.Value] = {}
    for label, sums_of_label in zip(_labels(reading, kind, names, list(sums), origins), sums.values(), strict=True):
        if _LAYOUTS[kind].keys != _CATEGORISED or not is_marker(label.category):  # markers have a kind of their own
            grouping.merge(totals, {label: sums_of_label})
    return totals


def _sums_by_key(
    reading: RankReading,
    kind: str,
    add_up: Callable[[EventsByGroup], Sequence[grouping.Value]],
    origins: Origins | None,
) -> tuple[Names, dict[tuple[int, ...], Any]]:
    """Return the sums of the events of one rank by key, and the texts that numbers in keys stand for."""
    names = Names()
    sums: dict[tuple[int, ...], Any] = {}
    for keys, durations, sizes in _batches(reading, kind, names, origins):
        groups = group_rows(keys)
        events = EventsByGroup(durations[groups.order], None if sizes is None else sizes[groups.order], groups.first)
        grouping.merge(sums, dict(zip(groups.keys, add_up(events), strict=True)))
    return names, sums


def _batches(
    reading: RankReading, kind: str, names: Names, origins: Origins | None
) -> Iterator[tuple[list[Ints], Ints, Ints | None]]:
    """Yield key columns, durations and sizes, some rows at a time; texts become numbers in `names`."""
    layout, by = _LAYOUTS[kind], reading.options.by
    lane = [by.value] if layout.has_lanes and by in LANES else ["id"] if origins else []
    keys = [*layout.keys, *lane]
    sizes = ("size",) if layout.has_sizes else ()
    if not origins and (known := read_before(reading.reader, layout.base, statement(kind), (*keys, *_TIMES, *sizes))):
        start, end, *size = known[len(keys) :]
        if len(start):
            durations = np.where(valid_times(start, end), end - start, -1)
            yield known[: len(keys)], durations, size[0] if sizes else None
        return
    sql = f"SELECT *, {_DURATION} AS duration FROM ({statement(kind)})"  # noqa: S608
    texts = layout.keys if layout.by_text else ()
    select = Select(sql, (*keys[len(texts) :], "duration", *sizes), texts=texts, base=layout.base)
    for batch in batches(reading.reader, select):
        codes = (np.fromiter(map(names.code, map(as_text, column)), np.int64, batch.count) for column in batch.texts)
        columns = [*codes, *batch.numbers]
        if origins:
            of_kind = operations.KERNEL if kind == "kernels" else operations.COPY
            columns[len(layout.keys)] = origins.of(of_kind, columns[len(layout.keys)])
        yield columns[: len(keys)], columns[len(keys)], columns[-1] if sizes else None


def _labels(
    reading: RankReading, kind: str, names: Names, keys: Sequence[tuple[int, ...]], origins: Origins | None
) -> list[Label]:
    """Return the label of each key. Ids are looked up here: once per rank, not once per row."""
    layout = _LAYOUTS[kind]
    count = len(layout.keys)
    ids = np.array([number for key in keys for number in key[:count]], np.int64)
    full: dict[int, str | None] = {}
    if layout.by_text:
        known = dict(enumerate(names.texts))
    elif kind == "kernels":
        known, full = operations.kernel_forms(reading, ids)
    else:
        known = operations.string_texts(reading.reader, ids)
    labels = []
    for key in keys:
        name, more = known.get(key[0]), known.get(key[1]) if count > 1 else None
        category, detail = (more, None) if layout.keys == _CATEGORISED else (kind.upper(), more)
        lane = key[count] if len(key) > count else NULL
        division = origins.key(lane) if origins else reading.key(lane)
        labels.append(Label(category, name, detail, division, full.get(key[0])))
    return labels


_Sums = dict[Key, dict[Row, grouping.Sums]]  # division -> values of the counted columns -> durations and bytes

OfRank = tuple[_Sums, dict[str, grouping.Sums]]
"""Sums of one rank; for each kind, the number of its events and of those with a duration."""


def _by(
    reading: Reading, name: str, kinds: Sequence[str], head: Sequence[str] = ("name",), without: Collection[str] = ()
) -> Tables:
    """Add up the events of all ranks by division and `head`, without those of some domains.

    Raises:
        RocpdError: there are no such events.
    """
    yield (answers := _totals(reading, kinds, head, without))
    yield _table_of(reading, name, answers, head)


def _table_of(reading: Reading, name: str, answers: Iterable[tuple[object, OfRank]], head: Sequence[str]) -> Summary:
    sums, counts = grouping.added(answers, _CALLED.get(name, name))
    for kind, (calls, timed) in counts.items():
        reading.note_invalid(kind, calls - timed, calls)
    Spread.settle(spread for heads in sums.values() for spread, _ in heads.values())
    extra = len(TABLES[name].fields) - len(STATISTICS) - len(head) - 1
    ordered = [(key, grouping.most_first(heads, _time)) for key, heads in grouping.in_order(sums)]
    # Each row needs quantiles, and a screen shows the first few of thousands.
    table = reading.summary(TABLES[name], lambda: (row for of_key in ordered for row in _rows(*of_key, extra)))
    table.counts = counts_of(spread for _, heads in ordered for _, (spread, _) in heads)
    return table


table_of_copies = partial(_table_of, name="copies", head=("name",))
"""Time, bytes and bandwidth by direction, from the answers of ranks to `copies_of_rank`."""

allocations = partial(_by, name="allocations", kinds=("memory_allocations",), head=("name", "detail"))
"""Time and bytes by operation and level."""

scratch = partial(_by, name="scratch", kinds=("scratch_memory",))
"""Time and bytes of scratch memory by operation."""

api = partial(_by, name="api", kinds=("regions",), head=("domain", "name"), without=OF_PROGRAMS)
"""Time by API domain and function, without operators and functions of the program itself."""

markers = partial(_by, name="markers", kinds=("markers",))
"""Time by message."""

domains = partial(_by, name="domains", kinds=ALL_KINDS, head=("domain",))
"""Time by domain, from the merged moments of all events, not from averages."""

_CALLED = {"copies": "memory copies", "scratch": "scratch memory", "api": "API calls", "domains": "events"}


_TOTALS = Fact("totals", 1, (grouping.Sums, Spread))


def _totals(
    reading: Reading, kinds: Sequence[str], head: Sequence[str], without: Collection[str] = ()
) -> RankAnswers[OfRank]:
    answers = reading.each(partial(_of_kinds, kinds=kinds, head=head, without=without))
    return answers.adding(grouping.together)


def _of_kinds(reading: RankReading, kinds: Sequence[str], head: Sequence[str], without: Collection[str] = ()) -> OfRank:
    work = partial(_totals_of_rank, kinds=kinds, head=head, without=without)
    return reading.derived(_TOTALS, work, kinds, head, sorted(without))


copies_of_rank = partial(_of_kinds, kinds=("memory_copies",), head=("name",))
"""The copies of one rank by direction."""


def _totals_of_rank(
    reading: RankReading, kinds: Sequence[str], head: Sequence[str], without: Collection[str]
) -> OfRank:
    """Add up the events of one rank; count all of a kind, and those that have a duration."""
    parts: dict[Key, dict[Row, list[grouping.Sums]]] = {}
    counts = {}
    for kind in kinds:
        labels = totals_by_label(reading, kind, _sums)
        totals = {label: of_label for label, of_label in labels.items() if label.domain not in without}
        spreads = [spread for spread, _ in totals.values()]
        counts[kind] = grouping.Sums((sum(spread.calls for spread in spreads), sum(spread.timed for spread in spreads)))
        for label, of_label in totals.items():
            key = tuple(getattr(label, column) for column in head)
            parts.setdefault(label.division, {}).setdefault(key, []).append(of_label)
    added = grouping.together  # many labels at once: a domain may hold a hundred thousand names
    return {division: {key: added(some) for key, some in heads.items()} for division, heads in parts.items()}, counts


def _sums(events: EventsByGroup) -> list[grouping.Sums]:
    spreads = spreads_by_group(events.durations, events.first)
    sizes = [0] * len(spreads)
    if events.sizes is not None:
        counted = np.where((events.durations >= 0) & (events.sizes > 0), events.sizes, 0)
        if total(counted) >= 1 << 63:
            sizes = [total(part) for part in np.split(counted, events.first[1:])]
        else:
            sizes = np.add.reduceat(counted, events.first).tolist()
    return [grouping.Sums(pair) for pair in zip(spreads, sizes, strict=True)]


def _time(of_head: grouping.Sums) -> int:
    spread: Spread = of_head[0]
    return spread.moments.total


def _rows(division: Key, sums: Sequence[tuple[Row, grouping.Sums]], extra: int = 0) -> Iterator[Row]:
    """Yield the rows of a division, with `extra` columns at the end: bytes, then bandwidth."""
    all_time = sum(_time(of_head) for _, of_head in sums)
    for head, of_head in sums:
        spread, size = of_head
        time = _time(of_head)
        bytes_and_rate = (size, gib_per_s(size, time))[:extra]
        yield (*division, *head, *statistics(spread), grouping.percent(time, all_time), *bytes_and_rate)


def gib_per_s(size: int, time: int) -> float | None:
    """Return the bandwidth of so many bytes in so many ns [GiB/s]; None if the time is 0."""
    return size / time * 1e9 / 2**30 if time else None


def categories(reading: Reading) -> Tables:
    """Return time by category, and the names without a category.

    Raises:
        RocpdError: there are no kernels.
        UsageError: the file of categories cannot be used.
    """
    known = load(reading.options.categories)
    yield (answers := _totals(reading, ("kernels",), ("name", "full")))
    divisions = grouping.added(((rank, sums) for rank, (sums, _) in answers), "kernels")
    if not any(is_communication(known.of(full)) for kernels in divisions.values() for _, full in kernels):
        reading.session.note("no communication kernels found")
    rows: list[Row] = []
    shown: list[Spread] = []
    missing: list[Row] = []
    for key, kernels in grouping.in_order(divisions):
        groups = by_key((known.of(full), (name, full)) for name, full in kernels)
        whole = sum(map(_time, kernels.values()))
        sums = {category: grouping.together([kernels[names] for names in some]) for category, some in groups.items()}
        for category, of_category in grouping.most_first(sums, _time):
            shown.append(of_category[0])
            count = len({full for _, full in groups[category]})
            share = grouping.percent(_time(of_category), whole)
            rows.append((*key, category, count, *statistics(of_category[0]), share))
        unknown: dict[str | None, grouping.Sums] = {}
        for name, full in groups.get(known.other, ()):
            grouping.merge(unknown, {name: kernels[name, full]})
        for name, of_name in grouping.most_first(unknown, _time):
            missing.append((*key, name, of_name[0].calls, _time(of_name), grouping.percent(_time(of_name), whole)))
    table = reading.summary(TABLES["categories"], rows)
    table.counts = counts_of(shown)
    yield table
    yield reading.summary(TABLES["unmatched"], missing)


def kernels(reading: Reading) -> Tables:
    """Return time by kernel; separately for each agent if that is asked for, with a division by step or marker.

    Raises:
        RocpdError: there are no kernels.
        UsageError: each agent is asked for without such a division.
    """
    if not reading.options.each_agent:
        yield from _by(reading, "kernels", ("kernels",))
    elif reading.by not in LAUNCHES:
        raise UsageError("--each-agent: only with --by step or --by marker", "--by agent divides by agent alone")
    else:
        fields = (*DIVISIONS[reading.by], RANK, AGENT, *TABLES["kernels"].fields)
        yield from _of_each_agent(reading, TABLES["kernels"], fields)


def marker_kernels(reading: Reading) -> Tables:
    """Return kernels by marker and agent.

    Raises:
        RocpdError: there are no kernels.
    """
    table = TABLES["marker-kernels"]
    return _of_each_agent(reading.asking(replace(reading.options, by=By.MARKER)), table, table.fields)


def _of_each_agent(reading: Reading, table: TableDefinition, fields: Sequence[Field]) -> Tables:
    places = yield from reading.summed(_read_agents, _OF_AGENTS, what="kernels")
    rows = grouping.rows_of(places, lambda key, sums: _rows(key, grouping.most_first(sums, _time)))
    yield Summary(table, fields, rows)


_OF_AGENTS = Fact("kernels-of-agents", 1, (grouping.Sums, Spread))


def _read_agents(reading: RankReading) -> _Sums:
    """Return the durations of the kernels of a rank by step or marker, rank and agent, then by name."""
    names = operations.OperationNames()
    ops = operations.read_ops(reading, names)
    ops = ops.take((ops.kind == operations.KERNEL).nonzero()[0])
    origins = read_origins(reading, reading.options.by or By.MARKER)
    places: _Sums = {}
    for (code, agent, name), rows in grouped([origins.of_ops(ops), ops.agent, ops.name]):
        key = (*origins.key(code), reading.rank.number, None if agent == NULL else agent)
        grouping.add(places, key, (names.texts[name],), grouping.Sums((Spread.of(ops.duration[rows]), 0)))
    return places


_Shapes = dict[Row, grouping.Sums]
"""Name, grid, work-group, and the columns from `groups` to `limited_by` -> durations of the runs; duration of the first
run on a GPU, the longest of all GPUs; and further sums."""

_SLOWED = 0.02  # share of the time of all kernels below which there is no finding
_FEWEST_ALONE = 5  # runs whose median counts as the usual duration of a kernel

_SYMBOLS = "SELECT id, COALESCE(arch_vgpr_count, 0) + COALESCE(accum_vgpr_count, 0) FROM rocpd_info_kernel_symbol"

_AGENTS = """SELECT id, name, cu_count, simd_count, wave_size, max_waves_per_cu, lds_size FROM agents
WHERE type = 'GPU'"""

_NUMBERS = ("name", "agent", *operations.GRID, *operations.GROUP, "lds", "scratch", "start", "end")


def kernel_shapes(reading: Reading) -> Tables:
    """Return kernels by the shape and the resources that they are launched with.

    Raises:
        RocpdError: there are no kernels.
    """
    groups = yield from reading.summed(_read_shapes, _SHAPES, what="kernels")
    yield reading.summary(TABLES["kernel-shapes"], grouping.rows_of(groups, _shape_rows), findings=_slowed(groups))


def _slowed(groups: Mapping[Key, _Shapes]) -> Iterator[Finding]:
    """Yield a finding on the time that kernels lose to communication beside them, if it is large."""
    shapes = [(shape[0], sums) for group in groups.values() for shape, sums in group.items()]
    longer, every = (sum(map(part, (sums for _, sums in shapes))) for part in (_longer, _time))
    if not every or longer < _SLOWED * every:
        return
    most, _ = max(shapes, key=lambda shape: _longer(shape[1]))
    share = f"{percent_text(longer * 100 / every)} of the time of all kernels"
    text = f"kernels take {readable(longer, 'ns')} longer beside communication than alone, {share}"
    text += f", most in {kernel_name(most or '').short}"
    evidence = {"beside_ns": longer, "total_ns": every}
    yield Finding(text, "kernel.beside", Verdict.NOTE, Confidence.LIKELY, evidence=evidence)


def _longer(sums: grouping.Sums) -> int:
    return int(sums[-1])


_SHAPES = Fact("shapes", 3, (grouping.Sums, Spread, grouping.Largest))


def _read_shapes(reading: RankReading) -> dict[Key, _Shapes]:
    *shape, start, end = operations.timed_columns(
        reading, "rocpd_kernel_dispatch", "kernels", _NUMBERS, "GPU operations"
    )
    if not len(start):
        return {}
    shown, full = operations.kernel_forms(reading, shape[0])
    beside = _beside(reading, full, shape[0], shape[1], start, end)
    registers = {number: int(count) for number, count in reading.reader.rows(_SYMBOLS)}
    gpus = _gpus(reading)
    of_agents: dict[int, _Shapes] = {}
    for (kernel, agent, *sizes), rows in grouped(shape):
        launched = _shape(shown.get(kernel), sizes, registers.get(kernel, 0), gpus.get(agent))
        durations = end[rows] - start[rows]
        first = grouping.Largest(durations[start[rows].argmin()])
        sums = Spread.of(durations), first, *_longer_beside(durations, beside[rows])
        grouping.add(of_agents, agent, launched, grouping.Sums(sums))
    shapes: dict[Key, _Shapes] = {}
    for agent, of_agent in of_agents.items():
        for launched, (spread, first, *longer) in of_agent.items():
            sums = spread, first, _unstable(spread), *longer
            grouping.add(shapes, reading.key(agent), launched, grouping.Sums(sums))
    return shapes


def _beside(
    reading: RankReading, names: Mapping[int, str | None], kernel: Ints, agent: Ints, start: Ints, end: Ints
) -> Ints:
    """Return the time that communication runs beside each dispatch on its agent [ns]; -1 for communication itself."""
    known = load(reading.options.categories)
    talks = per_id(kernel, lambda number: int(is_communication(known.of(names.get(number))))) == 1
    beside = np.full(len(start), -1, np.int64)
    for _, rows in grouped([agent]):
        others, talking = rows[~talks[rows]], rows[talks[rows]]
        parts = union(start[talking], end[talking])
        beside[others] = covered(parts, end[others]) - covered(parts, start[others])
    return beside


def _longer_beside(durations: Ints, beside: Ints) -> tuple[int, int]:
    """Return the number of runs beside communication, and by how much longer all of them together usually take [ns].

    Medians are compared, as they leave out a slow step, in which all runs take longer.
    """
    alone, some = beside == 0, 2 * beside >= np.maximum(durations, 1)
    if not some.any() or alone.sum() < _FEWEST_ALONE:
        return 0, 0
    usual, other = (float(np.median(durations[rows])) for rows in (alone, some))
    return int(some.sum()), round(int(some.sum()) * (other - usual))


def _unstable(spread: Spread) -> int:
    """Return the time between the 5th percentile and the median of durations, times the number of calls [ns]."""
    middle, low = spread.quantile(0.5), spread.quantile(_LOW)
    return 0 if middle is None or low is None else round((middle - low) * spread.calls)


def _gpus(reading: RankReading) -> dict[int, GpuLimits]:
    gpus = {}
    for agent, name, *limits in reading.reader.rows(_AGENTS):
        units, simds, *others = (max(0, number(limit)) for limit in limits)
        if units:
            gpus[agent] = GpuLimits(str(name), units, simds // units, *others)
    return gpus


def _shape(name: str | None, sizes: list[int], registers: int, gpu: GpuLimits | None) -> Row:
    x, y, z, *workgroup, lds, scratch = (0 if size == NULL else size for size in sizes)
    pairs = [*zip((x, y, z), workgroup, strict=True)]
    groups = math.prod(-(-items // size) for items, size in pairs) if all(map(all, pairs)) else None
    fits = waves_per_simd(gpu, KernelNeeds(math.prod(workgroup), registers, lds)) if gpu else None
    takes = groups, gpu.compute_units if gpu else None, registers, lds, scratch
    return name, (x, y, z), tuple(workgroup), *takes, *(fits or (None, None))


def _shape_rows(key: Key, shapes: Mapping[Row, grouping.Sums]) -> Iterator[Row]:
    whole = sum(map(_time, shapes.values()))
    for shape in sorted(shapes, key=lambda shape: (-_time(shapes[shape]), grouping.order_of((shape[0], *shape[1])))):
        name, grid, workgroup, *takes = shape
        (spread, first, unstable, runs, longer), time = shapes[shape], _time(shapes[shape])
        front = (*key, name, *("x".join(map(str, size)) for size in (grid, workgroup)))
        middle = spread.quantile(0.5)
        rest = middle, unstable, int(first), longer if runs else None
        yield (*front, spread.calls, time, grouping.percent(time, whole), *takes, *rest)
