"""Reads what was counted of the dispatches of a rank, as `rocpd.counters` takes it, and joins passes over ranks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from rocpd.counters.hardware import Hardware, hardware
from rocpd.counters.measured import SIZES, CounterRows, Measured, Pass, by_name, joined
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.columns import Select, columns, read_all
from rocpd.read.columns import number as whole
from rocpd.read.groups import grouped
from rocpd.read.names import as_text
from rocpd.summary.ops import kernel_texts
from rocpd.summary.options import Options
from rocpd.summary.reading import RankReading, Reading
from rocpd.summary.statements import statement
from rocpd.trace.kernel_names import KernelNames
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Answer, Floats, Ints

_COLUMNS = ("event", "number", "name", "agent", "lds", "scratch", "start", "end")
_GRID, _GROUP = (tuple(f"{what}_size_{axis}" for axis in "xyz") for what in ("grid", "workgroup"))
_REGISTERS = """SELECT id, arch_vgpr_count, accum_vgpr_count, sgpr_count FROM rocpd_info_kernel_symbol"""
_AGENTS = "SELECT id, name, extdata FROM rocpd_info_agent"
_COUNTERS = "SELECT id, name, symbol FROM rocpd_info_pmc"
_EXPRESSIONS = "SELECT DISTINCT name, expression FROM rocpd_info_pmc WHERE expression <> '' AND expression <> name"
_ANY = """SELECT 1 FROM rocpd_pmc_event WHERE sample_id IS NULL AND event_id IN
(SELECT event_id FROM rocpd_kernel_dispatch) LIMIT 1"""
_PASSES = """SELECT MAX(json_extract(extdata, '$.passes')) FROM rocpd_info_process WHERE json_valid(extdata)"""
_VALUES = Select(
    statement("counter_values"), ("event", "pmc"), ("value",), base="rocpd_pmc_event", reals_are_whole=True
)
_PASS_VALUES = Select(statement("counter_passes"), ("event", "pmc", "pass", "start", "end"), ("value",))


def measured(reader: RankReader, names: KernelNames = KernelNames.DISPLAY) -> Measured:
    """Return what was counted in a rank: its dispatches with counter values, or all where none has any."""
    return reader.once(("measured", names), lambda: _measured(reader, names))


def _measured(reader: RankReader, names: KernelNames) -> Measured:
    has_passes = whole(reader.rows(_PASSES)[0][0]) > 1
    read = read_all(reader, _PASS_VALUES if has_passes else _VALUES)
    dispatches = columns(reader, "rocpd_kernel_dispatch", statement("kernels"), (*_COLUMNS, *_GRID, *_GROUP))
    event, number, *_, start, end = dispatches[: len(_COLUMNS)]
    counted = np.isin(event, read.numbers[0])
    chosen = np.flatnonzero(counted) if counted.any() else np.arange(len(event))
    order = chosen[np.lexsort((number[chosen], start[chosen]))]
    event, number, kernel, agent, lds, scratch, start, end, *axes = (column[order] for column in dispatches)
    grid, group = (np.prod([_known(axis) for axis in three], axis=0) for three in (axes[:3], axes[3:]))
    sizes = dict(zip(SIZES, (grid, group, _known(lds), _known(scratch)), strict=False))
    durations = np.where(valid_times(start, end), end - start, np.nan).astype(np.float64)
    values = _Values(event, read.numbers[0], read.numbers[1], read.reals[0])
    symbols = reader.rows(_COUNTERS)
    if has_passes:
        called = {number: as_text(symbol) or as_text(name) or "?" for number, name, symbol in symbols}
        passes = tuple(_passes_in_file(values, called, *read.numbers[2:]))
    else:
        called = {number: as_text(name) or "?" for number, name, _ in symbols}
        counters = values.counters(called)
        passes = (Pass(counters, durations, values.collected),) if counters else ()
    texts = kernel_texts(reader, names, kernel)
    known, kernels = np.unique(kernel, return_inverse=True)
    gpus, kinds = _hardware(reader, agent)
    return Measured(
        kernels,
        tuple(texts.get(number) for number in known.tolist()),
        number,
        gpus,
        agent,
        sizes | _registers(reader, kernel),
        durations,
        passes,
        kinds,
        expressions={str(name): str(text) for name, text in reader.rows(_EXPRESSIONS)},
    )


class _Values:
    """Counter values as columns, with the row of the dispatch that each is of."""

    def __init__(self, events: Ints, event: Ints, pmc: Ints, value: Floats) -> None:
        rows = _rows_of(events, event)
        is_known = (rows >= 0) & ~np.isnan(value)
        self.known: Ints | slice = slice(None) if is_known.all() else np.flatnonzero(is_known)
        self.rows, self.pmc, self.value = rows[self.known], pmc[self.known], value[self.known]
        self.collected = 0

    def counters(self, called: Mapping[int, str], chosen: Ints | None = None) -> dict[str, CounterRows]:
        """Return the values by counter; `chosen`: only some of them."""
        pmc = self.pmc if chosen is None else self.pmc[chosen]
        groups = [(key[0], some if chosen is None else chosen[some]) for key, some in grouped([pmc])]
        self.collected = len(groups)
        return by_name((called.get(pmc, "?"), self.rows[some], self.value[some]) for pmc, some in groups)


def _rows_of(ids: Ints, wanted: Ints) -> Ints:
    """Return where each of the wanted ids stands in `ids`, -1 where it does not."""
    if not len(ids):
        return np.full(len(wanted), -1)
    low, span = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    if span <= len(ids) + 4 * len(wanted):  # a table of all of them: ten times as fast as searching
        table = np.full(span, -1)
        table[ids[::-1] - low] = np.arange(len(ids))[::-1]  # of ids that come again the first counts
        inside = (wanted >= low) & (wanted < low + span)
        return np.where(inside, table[np.where(inside, wanted - low, 0)], -1)
    order = np.argsort(ids, kind="stable")
    nearest = np.clip(np.searchsorted(ids[order], wanted), 0, len(ids) - 1)
    return np.where(ids[order][nearest] == wanted, order[nearest], -1)


def _passes_in_file(values: _Values, called: Mapping[int, str], number: Ints, start: Ints, end: Ints) -> Iterator[Pass]:
    """Yield the passes of a program whose file holds all of them; one has no times where its values have none."""
    number, start, end = (column[values.known] for column in (number, start, end))
    count = int(values.rows.max(initial=-1)) + 1
    for _, some in sorted(grouped([number])):
        counters = values.counters(called, some)
        times = np.where(valid_times(start[some], end[some]), end[some] - start[some], np.nan)
        durations = np.full(count, np.nan)
        durations[values.rows[some]] = times
        yield Pass(counters, None if np.isnan(durations).all() else durations, values.collected)


def _known(sizes: Ints) -> Floats:
    """Return sizes, NaN where they are unknown."""
    return np.where(sizes == NULL, np.nan, sizes)


def _registers(reader: RankReader, kernels: Ints) -> dict[str, Floats]:
    known = {row[0]: [np.nan if count is None else count for count in row[1:]] for row in reader.rows(_REGISTERS)}
    ids, places = np.unique(kernels, return_inverse=True)
    table = np.array([known.get(number, [np.nan] * 3) for number in ids.tolist()], np.float64).reshape(-1, 3)
    return {name: table[places, column] for column, name in enumerate(SIZES[4:])}


def _hardware(reader: RankReader, agents: Ints) -> tuple[Ints, tuple[Hardware, ...]]:
    """Return for each dispatch which kind of GPU ran it, and these kinds."""
    ids, places = np.unique(agents, return_inverse=True)
    rows = [row for row in reader.rows(_AGENTS) if row[0] in ids]
    described = {number: hardware(str(name), _document(text)) for number, name, text in rows}
    kinds: dict[Hardware, int] = {}
    of_agent = [kinds.setdefault(described.get(number, Hardware("?", {})), len(kinds)) for number in ids.tolist()]
    return np.array(of_agent, np.int64)[places] if len(ids) else places, tuple(kinds)


def _document(text: object) -> dict[str, Any]:
    try:
        document = json.loads(text) if isinstance(text, str | bytes) else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def are_counted(reading: Reading) -> bool:
    """Whether any counter of a kernel was collected in what is read."""
    return any(is_counted for _, is_counted in reading.with_passes().each(_is_counted))


def _is_counted(reading: RankReading) -> bool:
    return bool(reading.reader.rows(_ANY))


def each_program(
    reading: Reading, work: Callable[[Measured, Rank, Options], Answer], needs_values: bool = False
) -> Iterator[tuple[Rank, Answer]]:
    """Do work on what was counted in each rank, and on the passes of each program together.

    Args:
        reading: what to read.
        work: a module-level function or a `functools.partial` of one; it and what it returns can be pickled.
        needs_values: ranks without counter values are left out.
    """
    programs = reading.every_pass.job.programs
    in_passes = frozenset(number for program in programs for number in program)
    waiting: dict[int, Measured] = {}
    task = partial(_counted, work=work, in_passes=in_passes, needs_values=needs_values)
    ranks: dict[int, Rank] = {}
    for rank, answer in reading.with_passes().each(task):
        if answer is None:
            continue
        if rank.number in in_passes:
            waiting[rank.number], ranks[rank.number] = cast("Measured", answer), rank
        else:
            yield rank, cast("Answer", answer)
    for number, program in join_passes(waiting, programs).items():
        yield ranks[number], work(program, ranks[number], reading.options)


def _counted(
    reading: RankReading,
    work: Callable[[Measured, Rank, Options], Answer],
    in_passes: frozenset[int],
    needs_values: bool,
) -> Answer | Measured | None:
    if needs_values and not _is_counted(reading):
        return None
    counted = measured(reading.reader, reading.options.kernel_names)
    return counted if reading.rank.number in in_passes else work(counted, reading.rank, reading.options)


def join_passes(by_rank: Mapping[int, Measured], groups: Iterable[Sequence[int]]) -> dict[int, Measured]:
    """Return what was measured with the passes of each program joined, by the first rank of each."""
    rest = dict(by_rank)
    for group in groups:
        runs = [rest[number] for number in group if number in rest]
        if len(runs) > 1:
            for number in group[1:]:
                rest.pop(number, None)
            rest[group[0]] = joined(runs)
    return rest
