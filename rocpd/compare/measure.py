"""Reads one rank: its work in each unit of time. Compute, exposed communication and copies, and idle time add up.

A unit is a step, from its start to the start of the next one; else an interval between given edges; else all the time
that counts. In a window, the units count that lie in it as a whole. Never looks at two ranks: `run_profile` determines
how much of communication is waiting.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import NULL, Floats, Ints, frozen
from rocpd.compare.calls import Function, host_work, read_calls
from rocpd.facts import operations
from rocpd.facts.agent_time import CAUSES, AgentTime, read_agent_times, read_history
from rocpd.facts.columns import as_text, columns, distinct, find_rows, group_rows, grouped, per_id, statement
from rocpd.facts.communication.collectives import Channel
from rocpd.facts.communication.members import channels_of
from rocpd.facts.places import SEPARATOR, read_origins
from rocpd.facts.rank import By, RankReading
from rocpd.facts.regions import read_ranges, step_spans
from rocpd.facts.timeline import COMMUNICATION, COPIES, IDLE, KINDS, divided, owned
from rocpd.facts.torch_operators import read_operators
from rocpd.facts.units import RankTime, Times
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.kernel_categories import Categories

_LAUNCHED_WITH = ("id", "name", *operations.GRID, *operations.GROUP, "lds", "scratch")
_SYMBOLS = """
SELECT K.id, K.kernel_name, K.arch_vgpr_count, K.accum_vgpr_count, K.sgpr_count, C.uri
FROM rocpd_info_kernel_symbol K LEFT JOIN rocpd_info_code_object C ON C.id = K.code_object_id
WHERE K.id IN (SELECT value FROM json_each(?))"""
_SIZE = re.compile(r"[#&]size=(\d+)")
_MOST_SHAPES = 16  # of one kernel in one rank; with more, the grid varies and does not identify a launch
_MOST_MOVES = 64  # different moves of a rank's collectives; with more, the size varies from step to step
_COPIES = "copies"

COPY_KIND = KINDS[COPIES]
"""The kind of launches that are copies."""

Grid = tuple[int, int, int, int, int, int]
"""Work-items in x, y, z, and of a work-group."""


class CodeFacts(NamedTuple):
    """Properties of the code of a kernel; NULL as None.

    Args:
        vgpr, agpr, sgpr: numbers of registers.
        lds: LDS per work-group, as launched [bytes].
        scratch: scratch memory per work-item, as launched [bytes].
        size: size of the code object [bytes].
    """

    vgpr: int | None = None
    agpr: int | None = None
    sgpr: int | None = None
    lds: int | None = None
    scratch: int | None = None
    size: int | None = None


class Moved(NamedTuple):
    """The work of a collective: its operation, as MPI names it, number of ranks, and bytes of the whole result."""

    operation: str
    ranks: int
    size: int


class KernelLaunch(NamedTuple):
    """Common properties of dispatches, or copies.

    Args:
        kind: `compute`, `communication` or `copy`.
        symbol: the linker's name; for a copy, its direction.
        name: full name for people.
        category: category of the kernel.
        path: marker ranges around the launch.
        grid: None for copies, where none was recorded, and for kernels with too many different ones.
        code: properties of its code.
        operator: operator of PyTorch that launched it; empty: none, or none are recorded.
        moved: work of a collective; None: not known from calls, or there are too many different ones.
    """

    kind: str
    symbol: str
    name: str
    category: str
    path: str
    grid: Grid | None
    code: CodeFacts
    operator: str = ""
    moved: Moved | None = None


def read_launches(
    reading: RankReading,
    ops: operations.Ops,
    names: operations.OperationNames,
    categories: Categories,
    kinds: Ints,
    channels: Sequence[Channel] = (),
) -> tuple[list[KernelLaunch], Ints]:
    """Return the kinds of launches of a rank, in the order of their first one, and for each operation its kind.

    Args:
        reading: reads the rank.
        ops: its operations.
        names: their names.
        categories: say what kernels do.
        kinds: kind of each, as `kinds_of` returns it.
        channels: its collectives.
    """
    origins = read_origins(reading, By.MARKER)
    place = origins.of_ops(ops)
    paths = [SEPARATOR.join(path) if isinstance(path, tuple) else "" for path in origins.places]
    kernel, grid, shape, symbols = _shapes(reading, ops)
    operators, by_operator = _operators(reading, ops)
    moves, by_move = _moves(ops, kinds, channels)
    groups = group_rows([kinds, ops.name, kernel, shape, place, by_operator, by_move])
    codes = np.zeros(len(ops), np.int64)
    known: dict[KernelLaunch, int] = {}
    in_order = sorted(groups, key=lambda group: int(group[1][0]))
    for (kind, name, number, of_shape, at, operator, move), rows in in_order:
        text = names.full[name] or ""
        around = paths[at] if at >= 0 else "", operators[operator]
        if kind == COPIES:
            launch = KernelLaunch(COPY_KIND, text, text, _COPIES, around[0], None, CodeFacts(), around[1])
        else:
            symbol, code = symbols.get(number, ("", CodeFacts()))
            launched: Grid | None = None
            if of_shape >= 0:
                x, y, z, a, b, c, lds, scratch = grid[of_shape]
                launched = (x, y, z, a, b, c) if x > 0 else None
                code = code._replace(lds=_value(lds), scratch=_value(scratch))
            front = (KINDS[kind], symbol or text, text, categories.of(text), around[0])
            launch = KernelLaunch(*front, launched, code, around[1], moves[move])
        codes[rows] = known.setdefault(launch, len(known))
    return list(known), codes


def _operators(reading: RankReading, ops: operations.Ops) -> tuple[Sequence[str], Ints]:
    """Return names of operators, the first one empty, and for each operation the number of its operator."""
    operators = read_operators(reading)
    if not len(operators.names):
        return ("",), np.zeros(len(ops), np.int64)
    texts = dict.fromkeys(["", *(text or "" for text in operators.names)])
    numbers = {text: number for number, text in enumerate(texts)}
    of_rows = np.array([numbers[text or ""] for text in (*operators.names, "")], np.int64)
    return tuple(numbers), of_rows[operators.nesting.innermost(*operations.launch_calls(reading.reader, ops.stack))]


def _moves(ops: operations.Ops, kinds: Ints, channels: Sequence[Channel]) -> tuple[Sequence[Moved | None], Ints]:
    """Return the different works of collectives, the first one None, and for each operation the number of its work."""
    known: dict[Moved | None, int] = {None: 0}
    codes, talks = np.zeros(len(ops), np.int64), np.flatnonzero(kinds == COMMUNICATION)
    for channel in channels:
        ranks = channel.size or 0
        each = [Moved(of.operation, ranks, of.volume(ranks or 1)) if of else None for of in channel.transfers]
        numbers = np.array([known.setdefault(moved, len(known)) for moved in each], np.int64)
        if len(channel.moves):
            at, is_its = find_rows(channel.rows, ops.row[talks])
            codes[talks[is_its]] = numbers[channel.moves[at[is_its]]]
    return ([None], 0 * codes) if len(known) > _MOST_MOVES else (list(known), codes)


def _value(number: object) -> int | None:
    return number if isinstance(number, int) and number != NULL else None


def _shapes(
    reading: RankReading, ops: operations.Ops
) -> tuple[Ints, Sequence[Sequence[int]], Ints, Mapping[int, tuple[str, CodeFacts]]]:
    """Return for each operation the kernel's id and the number of its shape, -1 for none; shapes; symbols by id."""
    kernel, shape = np.full(len(ops), NULL), np.full(len(ops), -1)
    dispatched = np.flatnonzero(ops.kind == operations.KERNEL)
    if not len(dispatched):
        return kernel, [], shape, {}
    row, *rest = columns(reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _LAUNCHED_WITH)
    at, _ = find_rows(row, ops.row[dispatched])
    chosen = [column[at] for column in rest]
    groups = group_rows(chosen)
    count = Counter(key[0] for key, _ in groups)
    shapes: list[Sequence[int]] = []
    kernel[dispatched] = chosen[0]
    for (number, *of_shape), rows in groups:
        if count[number] <= _MOST_SHAPES:
            shape[dispatched[rows]] = len(shapes)
            shapes.append(of_shape)
    return kernel, shapes, shape, _symbols(reading, chosen[0])


def _symbols(reading: RankReading, kernels: Ints) -> dict[int, tuple[str, CodeFacts]]:
    wanted = json.dumps([number for number in distinct(kernels).tolist() if number != NULL])
    result = {}
    for number, symbol, vgpr, agpr, sgpr, uri in reading.reader.rows(_SYMBOLS, (wanted,)):
        size = _SIZE.search(uri) if isinstance(uri, str) else None
        code = CodeFacts(_value(vgpr), _value(agpr), _value(sgpr), size=int(size[1]) if size else None)
        result[number] = as_text(symbol) or "", code
    return result


WHOLE = -1
"""The number of the unit that is all the time."""


@frozen
class UnitEdges:
    """The units of a rank.

    Args:
        numbers: numbers of the units.
        edges: unit `numbers[n]` lasts from `edges[n]` to `edges[n + 1]` [ns of the rank's clock].
        ends: end of each unit's marker, up to which it has to lie in a window to count.
    """

    numbers: Ints
    edges: Ints
    ends: Ints


class ExposedCommunication(NamedTuple):
    """Pieces of time in which a communication kernel runs and nothing computes, on all agents.

    Args:
        unit: row of the unit.
        launch: number in `RankMeasure.launches`.
        row: id of the dispatch.
        start, end: bounds [ns].
    """

    unit: Ints
    launch: Ints
    row: Ints
    start: Ints
    end: Ints


@frozen
class RankMeasure:
    """The work of a rank in each unit; times are sums over its agents [ns].

    Args:
        units: its units.
        agents: number of its GPUs with work.
        launches: kernels and copies, by their properties and the place of their launch.
        calls: number of those that started in a unit: `[unit, launch]`.
        time: total time of these.
        exposed: time that each adds to that in which its own or an earlier kind runs.
        medians: median time of these; NaN: none started.
        idle: `[unit, cause]`, in the order of `CAUSES`.
        exposed_communication: pieces of time of the communication in `exposed`.
        channels: the rank's communication kernels.
        phases: time in the wanted marker ranges, by unit [ns].
        functions, called: calls of the host, as `read_calls` returns them.
        part: the part of the rank's time that counts.
    """

    units: UnitEdges
    agents: int
    launches: Sequence[KernelLaunch]
    calls: Ints
    time: Ints
    exposed: Ints
    medians: Floats
    idle: Ints
    exposed_communication: ExposedCommunication
    channels: Sequence[Channel]
    phases: Ints
    functions: Sequence[Function]
    called: Ints
    part: Part


@frozen
class Measuring:
    """The way in which ranks are measured.

    Args:
        categories: say what kernels do.
        step: markers that are steps.
        times: time of each rank that counts.
        marker: marker ranges whose time is wanted.
        given: rank -> units in place of steps, None for the whole time; other ranks are then left out.
    """

    categories: Categories
    step: re.Pattern[str]
    times: Times
    marker: re.Pattern[str] | None = None
    given: Mapping[int, UnitEdges | None] | None = None


def measure(reading: RankReading, how: Measuring) -> RankMeasure | None:
    """Read one rank; return its measure, or None if it has no operations in the window.

    Args:
        reading: reads the rank; no window cuts its events.
        how: the way of measuring.
    """
    names = operations.OperationNames()
    every, has_time = operations.read_ops(reading, names, stacks=True), operations.has_its_time(reading.reader)
    ops = every.take(np.flatnonzero(per_id(every.agent, lambda agent: int(has_time(agent)))))
    if not len(ops):
        return None
    part = reading.window.part
    units = inside(_steps(reading, how.step), part) if how.given is None else how.given[reading.rank.number]
    units = units or _whole(ops, part, how.times.get(reading.rank.number))
    if units is None:
        return None
    kinds = operations.kinds_of(ops, how.categories, names)
    history = read_history(reading)  # reads all columns of regions, some of which launches need
    channels = channels_of(reading, ops, names, how.categories)
    launches, codes = read_launches(reading, ops, names, how.categories, kinds, channels)
    calls, time, medians = _count(ops, codes, units, len(launches))
    exposed, idle = np.zeros(calls.shape, np.int64), np.zeros((len(units.numbers), len(CAUSES)), np.int64)
    communication, of_agents = [np.zeros((5, 0), np.int64)], list[tuple[Ints, AgentTime]]()
    counted, agents = RankTime(int(units.edges[0]), int(units.edges[-1])), len(set(ops.agent.tolist()))
    for spent in read_agent_times(reading, counted, ops, kinds, causes=True):
        unit, pieces = divided(spent.pieces(), units.edges)
        of, is_idle = spent.cut(pieces), spent.part[pieces.of] == IDLE
        np.add.at(idle, (unit[is_idle], of.cause[is_idle]), of.length[is_idle])
        of_agents.append((unit, of))
        np.add.at(exposed, (unit[~is_idle], codes[of.operation[~is_idle]]), of.length[~is_idle])
        talks = of.part == COMMUNICATION
        rows = of.operation[talks]
        communication.append(np.array([unit[talks], codes[rows], ops.row[rows], of.start[talks], of.end[talks]]))
    shown, phases = ExposedCommunication(*np.concatenate(communication, axis=1)), _phases(reading, how.marker, units)
    times = calls, time, exposed, medians, idle
    functions, called = read_calls(reading, history, units.edges)
    markers, waited = host_work(history, of_agents, len(units.numbers), agents)
    host = [*functions, *markers], np.concatenate([called, waited], axis=1)
    return RankMeasure(units, agents, launches, *times, shown, channels, phases, *host, part)


def inside(units: UnitEdges | None, part: Part) -> UnitEdges | None:
    """Return the units that lie in a part of the time as a whole; None if there are none.

    >>> numbers, edges, ends = np.array([5, 6, 7]), np.array([10, 20, 30, 40]), np.array([19, 29, 39])
    >>> units = inside(UnitEdges(numbers, edges, ends), Part(15, 29))
    >>> units.numbers.tolist(), units.edges.tolist()
    ([6], [20, 30])
    """
    if units is None:
        return None
    first = 0 if part.start is None else int(np.searchsorted(units.edges, part.start))
    last = len(units.numbers) if part.end is None else int(np.searchsorted(units.ends, part.end, side="right"))
    numbers, edges, ends = units.numbers[first:last], units.edges[first : last + 1], units.ends[first:last]
    return UnitEdges(numbers, edges, ends) if len(numbers) else None


def _whole(ops: operations.Ops, part: Part, time: RankTime | None) -> UnitEdges | None:
    """Return the time that counts, else from the first to the last operation, as one unit; None if nothing ran."""
    low, high = (time.start, time.end) if time else (int(ops.start.min()), int(ops.end.max()))
    start, end = max(low, part.start or low), high if part.end is None else min(high, part.end)
    is_some = bool(((ops.start < end) & (ops.end > start)).any())
    return UnitEdges(np.array([WHOLE]), np.array([start, end]), np.array([end])) if is_some else None


def _steps(reading: RankReading, pattern: re.Pattern[str]) -> UnitEdges | None:
    """Return the steps of the rank."""
    ordered = sorted(step_spans(reading.reader, pattern).items(), key=lambda item: item[1])
    if not ordered:
        return None
    ends = np.array([end for _, (_, end) in ordered])
    edges = np.array([*(start for _, (start, _) in ordered), ends.max()])
    return UnitEdges(np.array([number for number, _ in ordered]), edges, np.minimum(ends, edges[1:]))


def _count(ops: operations.Ops, codes: Ints, units: UnitEdges, count: int) -> tuple[Ints, Ints, Floats]:
    """Return the number of operations of each kind of launch per unit, their time, and their median; NaN: none."""
    shape = len(units.numbers), count
    unit = np.searchsorted(units.edges, ops.start, side="right") - 1
    some = np.flatnonzero((unit >= 0) & (unit < shape[0]))
    group = unit[some] * count + codes[some]
    duration = ops.duration[some]
    calls = np.bincount(group, minlength=shape[0] * count)
    time, medians = np.zeros(len(calls), np.int64), np.full(len(calls), np.nan)
    np.add.at(time, group, duration)
    ordered = duration[np.lexsort((duration, group))]
    used = np.flatnonzero(calls)
    first, last = (np.cumsum(calls) - calls)[used], np.cumsum(calls)[used] - 1
    below = (first + last) // 2
    medians[used] = (ordered[below] + ordered[first + last - below]) / 2
    return calls.reshape(shape), time.reshape(shape), medians.reshape(shape)


def _phases(reading: RankReading, marker: re.Pattern[str] | None, units: UnitEdges) -> Ints:
    """Return the time of the wanted marker ranges, by the unit of their start; nested ranges count once."""
    times = np.zeros(len(units.numbers), np.int64)
    every = read_ranges(reading.reader).every if marker else ()
    asked = [(each.thread or 0, each.start, each.end) for each in every if marker and marker.search(each.text)]
    thread, start, end = np.array(asked, np.int64).reshape(-1, 3).T
    for (_,), rows in grouped([thread]):
        pieces = owned(start[rows], end[rows])
        unit = np.searchsorted(units.edges, pieces.start, side="right") - 1
        some = (unit >= 0) & (unit < len(times))
        np.add.at(times, unit[some], pieces.length[some])
    return times
