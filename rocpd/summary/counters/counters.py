"""Hardware counters per kernel: one row per kernel and counter, or a column per counter.

Reads the counter values of the dispatches of a rank, in the form for `rocpd.counters`, and joins passes over ranks.

Also lists the coverage: counters, passes, dispatches; and the counters to collect for the metrics of each panel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rocpd.base import NULL, Answer, Floats, Ints, RocpdError, Row
from rocpd.base.texts import json_object
from rocpd.counters.definitions import Architecture, CounterMetric, Hardware, architecture, hardware, is_counter, needs
from rocpd.counters.measured import SIZES, CounterRows, Measured, Pass, block_of, collecting_runs, joined
from rocpd.counters.measured import by_name as rows_by_name
from rocpd.counters.metrics import MetricSums, terms_of
from rocpd.counters.panels import PANELS
from rocpd.facts.columns import (
    Select,
    as_text,
    columns,
    different,
    distinct,
    find_rows,
    grouped,
    numbered,
    per_id,
    read_all,
    statement,
)
from rocpd.facts.columns import number as whole
from rocpd.facts.operations import GRID, GROUP, kernel_texts
from rocpd.facts.rank import By, Key, Options, RankReading
from rocpd.facts.spread import total
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary import grouping
from rocpd.summary.reading import RankAnswers, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of

_KERNEL = Field("kernel", "", "kernel", is_kernel=True)

TABLES = by_name(
    table_of(
        "counters",
        "Counters by kernel, in the unit of the counter; a dispatch's value is the sum over its instances.",
        _KERNEL,
        Field("counter", "", "counter"),
        Field("unit", "", "its unit, as the profiler says"),
        Field("dispatches", "", "dispatches with a value"),
        Field("min", "", "smallest value of a dispatch", True),
        Field("mean", "", "mean of dispatches"),
        Field("max", "", "largest"),
        Field("sum", "", "sum over dispatches", True),
    ),
    table_of(
        "counters-wide",
        "Mean of each counter by kernel; after these columns one per counter, by name.",
        _KERNEL,
        Field("dispatches", "", "most dispatches that any counter has"),
    ),
    table_of(
        "collected",
        "Counters that were collected, and what they cover.",
        Field("counter", "", "its name"),
        Field("block", "", "block of the hardware that counts"),
        Field("architecture", "", "of the GPUs"),
        Field("passes", "", "passes of the program that have it, from 1"),
        Field("instances", "", "most values of one dispatch, which are added up"),
        Field("dispatches", "", "dispatches with a value"),
        Field("of", "", "dispatches with any counter"),
    ),
    table_of(
        "passes",
        "How long kernels took in each pass of the program: metrics of several passes are as certain as that is equal.",
        Field("kernel", "", "kernel", is_kernel=True),
        Field("passes", "", "passes of which the times are known"),
        Field("dispatches", "", "dispatches of each"),
        Field("fastest_ns", "ns", "mean duration in the fastest pass"),
        Field("slowest_ns", "ns", "mean duration in the slowest pass"),
        Field("spread_percent", "%", "longest less shortest time of a dispatch, by its median; mean of dispatches"),
        Field("unmatched", "", "dispatches of a pass that the others do not have, of all kernels together"),
    ),
    table_of(
        "to-collect",
        "What rocprofv3 has to collect for the metrics that lack counters, a run of the program each.",
        Field("panel", "", "panel"),
        Field("architecture", "", "of the GPUs"),
        Field("run", "", "run of the program, from 1"),
        Field("option", "", "option of rocprofv3", is_command=True),
        is_exact=True,
    ),
)

_DISPATCHED = ("event", "name", "agent", "stream")
_COLUMNS = ("event", "number", "name", "agent", "lds", "scratch", "start", "end")
_REGISTERS = """SELECT id, arch_vgpr_count, accum_vgpr_count, sgpr_count FROM rocpd_info_kernel_symbol"""
_AGENTS = "SELECT id, name, extdata FROM rocpd_info_agent"
_COUNTERS = "SELECT id, name, symbol, units FROM rocpd_info_pmc"
_EXPRESSIONS = "SELECT DISTINCT name, expression FROM rocpd_info_pmc WHERE expression <> '' AND expression <> name"

_ANY = """SELECT 1 FROM rocpd_pmc_event WHERE sample_id IS NULL AND event_id IN
(SELECT event_id FROM rocpd_kernel_dispatch) LIMIT 1"""

_PASSES = """SELECT MAX(json_extract(extdata, '$.passes')) FROM rocpd_info_process WHERE json_valid(extdata)"""

_VALUES = Select(
    statement("counter_values"), ("event", "pmc"), ("value",), base="rocpd_pmc_event", reals_are_whole=True
)

_PASS_VALUES = Select(statement("counter_passes"), ("event", "pmc", "pass", "start", "end"), ("value",))


_MEASURED = Fact("measured", 2, (Measured, Pass, CounterRows, Hardware))


def measured(reader: RankReader, names: KernelNames = KernelNames.DISPLAY) -> Measured:
    """Return the counter values of a rank, with its dispatches that have some, or all where none has any."""
    return reader.once(_MEASURED.of(names.value), lambda: _measured(reader, names))


def _measured(reader: RankReader, names: KernelNames) -> Measured:
    has_passes = whole(reader.rows(_PASSES)[0][0]) > 1
    read = read_all(reader, _PASS_VALUES if has_passes else _VALUES)
    dispatches = columns(reader, "rocpd_kernel_dispatch", statement("kernels"), (*_COLUMNS, *GRID, *GROUP))
    event, number, *_, start, end = dispatches[: len(_COLUMNS)]
    counted = np.isin(event, read.numbers[0])
    chosen = counted.nonzero()[0] if counted.any() else np.arange(len(event))
    order = chosen[np.lexsort((number[chosen], start[chosen]))]
    event, number, kernel, agent, lds, scratch, start, end, *axes = (column[order] for column in dispatches)
    grid, group = (np.prod([_known(axis) for axis in three], axis=0) for three in (axes[:3], axes[3:]))
    sizes = dict(zip(SIZES, (grid, group, _known(lds), _known(scratch)), strict=False))
    durations = np.where(valid_times(start, end), end - start, np.nan).astype(np.float64)
    rows, is_known = find_rows(event, read.numbers[0])
    known = (is_known & ~np.isnan(read.reals[0])).nonzero()[0]
    values = rows[known], read.numbers[1][known], read.reals[0][known]
    symbols = reader.rows(_COUNTERS)
    if has_passes:
        called = {number: as_text(symbol) or as_text(name) or "?" for number, name, symbol, _ in symbols}
        passes = tuple(_passes_in_file(values, called, *(column[known] for column in read.numbers[2:])))
    else:
        called = {number: as_text(name) or "?" for number, name, *_ in symbols}
        passes = (_pass_of(called, durations, *values),) if len(known) else ()
    texts, times = kernel_texts(reader, names, dispatches[2]), dict[str | None, int]()
    lasting = np.where(valid_times(*dispatches[6:8]), dispatches[7] - dispatches[6], 0)
    for (kernel_id,), runs in grouped([dispatches[2]]):
        grouping.merge(times, {texts.get(kernel_id): total(lasting[runs])})
    ids, kernels = distinct(kernel), numbered(kernel)
    gpus, kinds = _hardware(reader, agent)
    sizes |= _registers(reader, kernel)
    names_of = tuple(texts.get(number) for number in ids.tolist())
    expressions = {str(name): str(text) for name, text in reader.rows(_EXPRESSIONS)}
    return Measured(kernels, names_of, number, gpus, agent, sizes, durations, passes, kinds, 0, expressions, times)


def _pass_of(called: Mapping[int, str], durations: Floats | None, rows: Ints, pmc: Ints, value: Floats) -> Pass:
    """Return values by counter; `rows`: places of their dispatches, `pmc`: ids of their counters."""
    groups = list(grouped([pmc]))
    named = rows_by_name((called.get(counter, "?"), rows[some], value[some]) for (counter,), some in groups)
    return Pass(named, durations, len(groups))


def _passes_in_file(
    values: tuple[Ints, Ints, Floats], called: Mapping[int, str], number: Ints, start: Ints, end: Ints
) -> Iterator[Pass]:
    """Yield the passes of a program whose file holds all of them; a pass without recorded times has none."""
    at, pmc, value = values
    for _, rows in sorted(grouped([number])):
        durations = np.full(int(at.max(initial=-1)) + 1, np.nan)
        durations[at[rows]] = np.where(valid_times(start[rows], end[rows]), end[rows] - start[rows], np.nan)
        known = None if np.isnan(durations).all() else durations
        yield _pass_of(called, known, at[rows], pmc[rows], value[rows])


def _known(sizes: Ints) -> Floats:
    """Return sizes, with NaN for unknown ones."""
    return np.where(sizes == NULL, np.nan, sizes)


def _number(count: object) -> float:
    """Return a count, NaN if it is unknown or damaged."""
    return float(count) if isinstance(count, (int, float)) else np.nan


def _registers(reader: RankReader, kernels: Ints) -> dict[str, Floats]:
    known = {kernel: list(map(_number, counts)) for kernel, *counts in reader.rows(_REGISTERS)}
    ids, places = distinct(kernels), numbered(kernels)
    table = np.array([known.get(number, [np.nan] * 3) for number in ids.tolist()], np.float64).reshape(-1, 3)
    return {name: table[places, column] for column, name in enumerate(SIZES[4:])}


def _hardware(reader: RankReader, agents: Ints) -> tuple[Ints, tuple[Hardware, ...]]:
    """Return for each dispatch the number of the kind of its GPU, and these kinds."""
    ids, places = distinct(agents), numbered(agents)
    rows = [row for row in reader.rows(_AGENTS) if row[0] in ids]
    described = {number: hardware(str(name), json_object(text) or {}) for number, name, text in rows}
    kinds: dict[Hardware, int] = {}
    of_agent = [kinds.setdefault(described.get(number, Hardware("?", {})), len(kinds)) for number in ids.tolist()]
    return np.array(of_agent, np.int64)[places] if len(ids) else places, tuple(kinds)


def are_counted(reading: Reading) -> bool:
    """Whether any counter of a kernel was collected in the selection."""
    return any(is_counted for _, is_counted in reading.with_passes().each(_is_counted))


_IS_COUNTED = Fact("is-counted", 1, ())


def _is_counted(reading: RankReading) -> bool:
    return reading.reader.once(_IS_COUNTED, lambda: bool(reading.reader.rows(_ANY)))


_Work: TypeAlias = Callable[[Measured, Rank, Options], Answer]
_AddUp: TypeAlias = Callable[[Sequence[Answer]], Answer]


def each_program(
    reading: Reading, work: _Work[Answer], add_up: _AddUp[Answer], needs_values: bool = False
) -> tuple[RankAnswers[Answer | Measured | None], Iterator[tuple[Rank, Answer]]]:
    """Return the answers of ranks, and an iterator of the results: of each rank, and of all passes of each program.

    Args:
        reading: what to read.
        work: a module-level function or a `functools.partial` of one; it and what it returns can be pickled.
        add_up: makes one answer of several.
        needs_values: whether ranks without counter values are left out.
    """
    programs = reading.every_pass.job.programs
    in_passes = frozenset(number for program in programs for number in program)
    task: Callable[[RankReading], Answer | Measured | None]
    task = partial(_counted, work=work, in_passes=in_passes, needs_values=needs_values)
    answers = _adding(reading, reading.with_passes().each(task), partial(_added, add_up=add_up))
    return answers, _programs(answers, work, programs)


def _adding(reading: Reading, answers: RankAnswers[Answer], add_up: _AddUp[Answer]) -> RankAnswers[Answer]:
    """Return answers that add up as they come, except for passes of a program, which are joined first."""
    return answers if reading.every_pass.job.programs else answers.adding(add_up)


def _added(answers: Sequence[Any], add_up: _AddUp[Answer]) -> Answer | None:
    known = [answer for answer in answers if answer is not None]
    return add_up(known) if known else None


def _programs(
    answers: RankAnswers[Answer | Measured | None], work: _Work[Answer], programs: Sequence[Sequence[int]]
) -> Iterator[tuple[Rank, Answer]]:
    """Yield the answers of ranks, then those of programs, each with its first rank that has an answer."""
    waiting: dict[int, tuple[Rank, Measured]] = {}
    for rank, answer in answers:
        if isinstance(answer, Measured):
            waiting[rank.number] = rank, answer
        elif answer is not None:
            yield rank, answer
    for program in programs:
        if runs := [waiting[number] for number in program if number in waiting]:
            (rank, counted), *further = runs
            every_pass = joined([run for _, run in runs]) if further else counted
            yield rank, work(every_pass, rank, answers.reading.options)


def _counted(
    reading: RankReading, work: _Work[Answer], in_passes: frozenset[int], needs_values: bool
) -> Answer | Measured | None:
    if needs_values and not _is_counted(reading):
        return None
    counted = measured(reading.reader, reading.options.kernel_names)
    return counted if reading.rank.number in in_passes else work(counted, reading.rank, reading.options)


def _cell(values: Sequence[float]) -> MetricSums:
    """Return the sums of the values of one kernel and counter."""
    return MetricSums(len(values), (_sum(values),), min(values), max(values)) if values else MetricSums(0)


def _cell_row(cell: MetricSums) -> Row:
    if not cell.count:
        return (0, None, None, None, None)
    total = _sum(cell.sums)
    mean, total_or_null = (None, None) if math.isnan(total) else (total / cell.count, total)  # NULL, as in SQLite
    return (cell.count, cell.least, mean, cell.most, total_or_null)


def _sum(values: Sequence[float]) -> float:
    """Add up exactly; the sum is not a number if both infinities are among the values."""
    try:
        return math.fsum(values)
    except (ValueError, OverflowError):
        return sum(values)


_Cells = dict[tuple[str | None, str | None], MetricSums]
_OfRank = tuple[dict[Key, _Cells], dict[str | None, str | None]]


def counters(reading: Reading) -> Tables:
    """Return the long and the wide table.

    Raises:
        RocpdError: no dispatch has counter values.
    """
    units: dict[str | None, str] = {}
    answers = _adding(reading, reading.with_passes().each(_read_counters, _COUNTED), _counted_in_all)
    yield answers
    divisions = grouping.added(_counted_once(reading, answers, units), *_NOT_COUNTED)
    rows = (
        (*key, kernel, counter, units[counter] or None, *_cell_row(cells[kernel, counter]))
        for key, cells in grouping.in_order(divisions)
        for kernel, counter in sorted(cells, key=grouping.order_of)
    )
    yield reading.summary(TABLES["counters"], rows)
    yield _wide(reading, divisions, units)


def _counted_in_all(answers: Sequence[_OfRank]) -> _OfRank:
    """Return the values and units of several ranks as one answer."""
    units: dict[str | None, str | None] = {}
    for _, of_rank in answers:
        units |= {counter: unit or units.get(counter) for counter, unit in of_rank.items()}
    return grouping.together([divisions for divisions, _ in answers]), units


def _counted_once(
    reading: Reading, answers: Iterable[tuple[Rank, _OfRank]], units: dict[str | None, str]
) -> Iterator[tuple[Rank, dict[Key, _Cells]]]:
    """Yield the values of each rank; of passes of one program, a counter has the values of the first pass that has it.

    `units` is filled with the unit of each counter.
    """
    programs = reading.every_pass.job.programs
    first = {number: program[0] for program in programs for number in program}
    order = {number: place for program in programs for place, number in enumerate(program)}
    counted: dict[int, set[str | None]] = {}
    if programs:
        answers = sorted(answers, key=lambda answer: order.get(answer[0].number, 0))
    for rank, (divisions, units_of_rank) in answers:
        known = counted.setdefault(first.get(rank.number, rank.number), set())
        for cells in divisions.values():
            for cell in [cell for cell in cells if cell[1] in known]:
                del cells[cell]
        known.update(units_of_rank)
        units |= {counter: unit or units.get(counter, "") for counter, unit in units_of_rank.items()}
        yield rank, divisions


_COUNTED = Fact("counters", 1, (MetricSums,))


def _read_counters(reading: RankReading) -> _OfRank:
    """Return the values of one rank by division, kernel and counter, and the units of its counters."""
    reader, by = reading.reader, reading.options.by
    event, kernel, agent, stream = columns(reader, "rocpd_kernel_dispatch", statement("kernels"), _DISPATCHED)
    read = read_all(reader, _VALUES)
    order = np.argsort(event, kind="stable")
    first, last = (np.searchsorted(event[order], read.numbers[0], side) for side in ("left", "right"))
    count = np.where(read.numbers[0] == NULL, 0, last - first)  # dispatches of the event of each value
    of_value = np.arange(len(count)).repeat(count)
    rows = order[np.arange(len(of_value)) + (first - count.cumsum() + count)[of_value]]
    pmc, value = read.numbers[1][of_value], read.reals[0][of_value]
    described = {number: (as_text(name), as_text(unit)) for number, name, _, unit in reader.rows(_COUNTERS)}
    named = {number: described.get(number, (None, None)) for number in distinct(pmc).tolist()}
    units = dict(named.values())
    counters = {name: place for place, name in enumerate(units)}
    counter = per_id(pmc, lambda number: counters[named[number][0]])
    first, cell = different(rows * max(1, len(counters)) + counter)  # a dispatch and a counter: its instances add up
    is_value = ~np.isnan(value)
    sums = CounterRows(cell[is_value], value[is_value]).summed(len(first))
    row, counter = np.divmod(first, max(1, len(counters)))
    lane = agent[row] if by is By.AGENT else stream[row] if by is By.STREAM else np.full(len(row), NULL)
    texts, names = kernel_texts(reader, reading.options.kernel_names, kernel[row]), list(counters)
    divisions: dict[Key, _Cells] = {}
    for (of_lane, of_kernel, number), cells in grouped([lane, kernel[row], counter]):
        values = sums[cells]
        cell_of = _cell(values[~np.isnan(values)].tolist())
        grouping.add(divisions, reading.key(of_lane), (texts.get(of_kernel), names[number]), cell_of)
    return divisions, units


def _wide(reading: Reading, divisions: Mapping[Key, _Cells], units: Mapping[str | None, str]) -> Summary:
    names = sorted(units, key=lambda name: name or "")
    table = TABLES["counters-wide"]
    more = tuple(Field(name or "?", units[name], "mean") for name in names)
    rows = []
    for key, cells in grouping.in_order(divisions):
        for kernel in sorted({kernel for kernel, _ in cells}, key=lambda name: name or ""):
            means = [_cell_row(cells[kernel, name]) if (kernel, name) in cells else (0, None, None) for name in names]
            rows.append((*key, kernel, max(row[0] for row in means), *(row[2] for row in means)))
    return reading.summary(table_of(table.name, table.doc, *table.fields, *more), rows)


_Covered = dict[tuple[str, str], grouping.Sums]
"""Counter and architecture -> most values of a dispatch, dispatches with a value, dispatches with any counter."""

_Passes = dict[tuple[str, str], dict[int, int]]
"""Counter and architecture -> passes that have it, from 1, and how many times."""

_Times = dict[str | None, grouping.Sums]
"""Kernel -> passes, dispatches; sums of their times in the fastest and the slowest pass [ns], and of the spread of each
dispatch over passes [%]; dispatches that not all passes have."""


def collected(reading: Reading) -> Tables:
    """Return the coverage of counters.

    Raises:
        RocpdError: nothing was counted.
    """
    answers, programs = each_program(reading, _of_program, grouping.together)
    yield answers
    covered, passes, times = grouping.added(programs, *_NOT_COUNTED)
    rows = []
    for counter, kind in sorted(covered):
        shown = " ".join(map(str, sorted(passes[counter, kind])))
        rows.append((counter, block_of(counter), kind, shown, *map(int, covered[counter, kind])))
    yield Summary.whole(TABLES["collected"], rows)
    if times and reading.wants("passes"):
        in_passes = (
            (kernel, int(passes), dispatches, *(time / dispatches for time in sums), unmatched)
            for kernel, (passes, dispatches, *sums, unmatched) in grouping.most_first(times, lambda _: 0)
        )
        yield Summary.whole(TABLES["passes"], in_passes)
    yield Summary.whole(TABLES["to-collect"], _to_collect(covered))


_NOT_COUNTED = "counter values of kernels", "rocprofv3 --pmc collects them"


def not_counted() -> RocpdError:
    """Return the error that there are no counter values."""
    return grouping.nothing(*_NOT_COUNTED)


def _of_program(counted: Measured, _rank: Rank, _options: Options) -> tuple[_Covered, _Passes, _Times]:
    covered: _Covered = {}
    passes: _Passes = {}
    for number, pass_ in enumerate(counted.passes, 1):
        for name, rows in pass_.counters.items():
            instances = np.bincount(rows.rows, minlength=counted.count)
            for kind, gpu in enumerate(counted.hardware):
                of_kind = counted.gpus == kind
                if dispatches := int(np.count_nonzero(instances[of_kind])):
                    coverage = grouping.Largest(instances[of_kind].max()), dispatches, int(np.count_nonzero(of_kind))
                    known = covered.get((name, gpu.name), coverage)  # of another pass of the same dispatches
                    most, with_value = map(max, known[:2], coverage[:2])
                    covered[name, gpu.name] = grouping.Sums((most, with_value, known[2]))
                    passes.setdefault((name, gpu.name), {})[number] = 1
    return covered, passes, _times(counted)


def _times(counted: Measured) -> _Times:
    passes = [pass_.durations for pass_ in counted.passes if pass_.durations is not None]
    if len(passes) < 2:
        return {}
    durations: Floats = np.array(passes)
    times: _Times = {}
    for (kernel,), rows in grouped([counted.kernels]):
        of_kernel = durations[:, rows]
        of_kernel = of_kernel[:, ~np.isnan(of_kernel).any(axis=0)]
        if of_kernel.shape[1]:
            totals = of_kernel.sum(axis=1)
            spread = 100 * (of_kernel.max(axis=0) - of_kernel.min(axis=0)) / np.median(of_kernel, axis=0)
            sums = (float(totals.min()), float(totals.max()), float(spread.sum()), counted.unmatched)
            times[counted.names[kernel]] = grouping.Sums((grouping.Largest(len(passes)), of_kernel.shape[1], *sums))
    return times


def _to_collect(covered: _Covered) -> Iterator[Row]:
    for kind in sorted({kind for _, kind in covered}):
        if (known := architecture(kind)) is None:
            continue
        names = {counter for counter, other in covered if other == kind}
        for panel in PANELS:
            runs = collecting_runs([_counters(known, metric) for _, metric in known.panel(panel)], names)
            yield from ((panel, kind, number, run.line) for number, run in enumerate(runs, 1))


def _counters(known: Architecture, metric: CounterMetric) -> list[str]:
    return [name for name in needs(metric.value, terms_of(known)) if is_counter(name)]
