"""Charts of tables, each named by the definition of its table. Arranges values; draws nothing."""

from __future__ import annotations

import itertools
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from statistics import median

from rocpd.base import Row, by_key
from rocpd.chart.model import BarPart, Bars, Chart, Columns, Flames, Lines, MarkedPoint, Matrix, Point, Series, Timeline
from rocpd.chart.plot import chart_of
from rocpd.facts.regions import CALLS, FUNCTIONS, SAMPLES
from rocpd.facts.units import slow_beyond
from rocpd.schema.rules.kernel_categories import load
from rocpd.summary.grouping import order_of
from rocpd.summary.host.calls import by_function
from rocpd.summary.host.calls import chart_of as chart_of_stacks
from rocpd.summary.result import Summary, by_front
from rocpd.table.human import readable
from rocpd.table.palette import BLUE, BROWN, GREEN, GREY, ORANGE, PURPLE, RED, SKY, colour_of

_TOP = 15  # bars of a table of totals
_SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)  # of lines without a colour of their own
_FIRST = re.compile(r" \(|[:;.,]")  # the first words of the sentence of a table
_BARS, _DIFFERING = 8, 8  # most bars of a budget; with more, so many that differ most are shown
_SIDE = 10  # rows and columns of a matrix
_LEAST = 0.05  # of the largest: bars that differ less from the median, and ranks that are waited for less, are left out
_MARKED = 5
_KINDS = (FUNCTIONS, CALLS, SAMPLES)  # of call stacks, the most telling of where time goes last
_NARROW, _READABLE = 1 / 400, 1 / 64  # least width of shown frames, as a share of all; stacks are deep
_FRAMES = 240  # widest frames of a flame graph, which are shown
_PARTS = ("compute_percent", "communication_percent", "exposed_communication_percent", "exposed_copies_percent")


def totals(table: Summary) -> Chart:
    """Show the first numbers of a table as bars."""
    units = [field.unit for field in table.fields]
    rows = table.fetchall()[:_TOP]
    title = table.definition.title or _FIRST.split(table.doc)[0]
    return chart_of(title, table.columns, units, list(table.shortened(rows)))


def kernels(table: Summary) -> Chart:
    """Show kernels in the colours of their categories."""
    chart = totals(table)
    categories = load(None)
    kinds = tuple(categories.of(name) for (name,) in table.values("name")[:_TOP])
    return replace(chart, kinds=kinds) if isinstance(chart, Bars) else chart


def budget(table: Summary) -> Chart:
    """Show the parts of each division as one bar; of many bars, those that differ most from their median."""
    place, percent = table.columns.index("part"), table.columns.index("percent")
    bars = {key: {row[place]: row[percent] or 0.0 for row in rows} for key, rows in by_front(table, "part").items()}
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    what = " ".join(table.columns[:place])
    labelled: Mapping[str, Mapping[str, float]] = {
        f"{what} {' '.join(map(str, key))}" if key else "all": parts for key, parts in bars.items()
    }
    title = "Parts of the time of GPUs"
    if len(bars) > _BARS:
        title = f"{title}: those that differ most of {len(bars)}"
        labelled = _differing(labelled, names)
    parts = [
        BarPart(name, colour_of(name), tuple(parts.get(name, 0.0) for parts in labelled.values())) for name in names
    ]
    return Bars(title, tuple(labelled), tuple(parts), "%")


def _differing(bars: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> dict[str, Mapping[str, float]]:
    """Return the medians of all bars, and the bars that differ most from them, most first."""
    middle = {name: median(parts.get(name, 0.0) for parts in bars.values()) for name in names}
    apart = {label: sum(abs(parts.get(name, 0.0) - middle[name]) for name in names) for label, parts in bars.items()}
    least = _LEAST * max(apart.values())
    most = sorted((label for label in bars if apart[label] >= least), key=lambda label: -apart[label])[:_DIFFERING]
    return {"median": middle, **{label: bars[label] for label in most}}


def heat(table: Summary) -> Chart:
    """Show the work of each rank in each slice of the time line."""
    front, *parts = map(table.columns.index, ("at_ns", *_PARTS))
    of_keys: dict[Row, tuple[Sequence[float], ...]] = {}
    for key, some in itertools.groupby(table, key=lambda row: tuple(row[:front])):
        states = (_states(*(row[part] / 100 for part in parts)) for row in some)
        of_keys[key] = tuple(array("d", shares) for shares in zip(*states, strict=True))  # of objects: ten times more
    what = table.columns[0]
    hosts = by_key((table.hosts.get(key[0], "?"), key) for key in of_keys)  # puts ranks of a host together
    keys = [key for some in hosts.values() for key in some]
    names = tuple(f"{what} {' '.join('-' if value is None else str(value) for value in key)}" for key in keys)
    shares = tuple(of_keys[key] for key in keys)
    groups = tuple(host for host, some in hosts.items() for _ in some) if table.hosts else ()
    start, width = next((row[front : front + 2] for row in table.first(1)), (0, 1))
    return _without_start_up(Timeline("What ranks do over time", names, start, width, shares, groups))


def _without_start_up(chart: Timeline) -> Timeline:
    """Return a time line cut to begin shortly before the first work, if more than half of it comes before that."""
    busy = (at for row in chart.shares for part in row for at, share in enumerate(part) if share)
    first = min(busy, default=0) - 1
    if first <= chart.slices / 2:
        return chart
    shares = tuple(tuple(part[first:] for part in row) for row in chart.shares)
    title = f"{chart.title}, after {readable(first * chart.slice, 'ns')} without work"
    return replace(chart, title=title, start=chart.start + first * chart.slice, shares=shares)


def _states(compute: float, communication: float, exposed: float, copies: float) -> tuple[float, ...]:
    """Return the shares of a slice spent in each of `WORK`."""
    hidden = min(compute, max(0.0, communication - exposed))
    return compute - hidden, hidden, exposed, copies


def _common(first: str, last: str) -> str:
    """Return the common start of two different texts; nothing for equal ones."""
    differing = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differing, 0)]


def steps(table: Summary) -> Columns:
    """Show the durations of steps, by their numbers; the slowest are marked."""
    columns = ("at_ns", "mean_ns", "max_ns", "step", "over_median", "is_warm_up")
    rows = sorted(table.values(*columns), key=lambda row: row[0] or 0)
    bound = slow_beyond([over for *_, over, is_warm_up in rows if over is not None and not is_warm_up])
    slow = sorted((place for place, row in enumerate(rows) if (row[4] or 0) > bound), key=lambda place: -rows[place][4])
    names = [str(row[3]) for row in rows]
    front = _common(min(names, default=""), max(names, default="")).rstrip("0123456789")
    means, longest = ([float(row[place] or 0) for row in rows] for place in (1, 2))
    tops = tuple(longest) if longest != means else ()  # one rank is its own mean
    marked = {place: f"{names[place]}: {readable(rows[place][2], 'ns')}" for place in slow[:_MARKED]}
    short = tuple(name[len(front) :] or name for name in names)
    what = front.rstrip(" #_:-") or "step"
    legend = ("mean of ranks", "longest rank") if tops else ("", "")
    return Columns("Duration of steps", short, tuple(means), tops, "ns", what, legend, marked)


def calls(table: Summary) -> Flames:
    """Show the tree of calls as a flame graph: by CPU time, or by GPU time if none has any."""
    *front, node, parent = (*range(table.columns.index("node")), *map(table.columns.index, ("node", "parent")))
    name, *units = map(table.columns.index, ("name", "cpu_self_ns", "gpu_self_ns"))
    rows = table.fetchall()
    is_cpu = any(row[units[0]] for row in rows)
    column = units[0 if is_cpu else 1]
    paths: dict[Row, tuple[str, ...]] = {}
    for row in rows:
        key = tuple(row[place] for place in front)
        above = paths.get((*key, row[parent]), tuple(map(str, key)))
        paths[*key, row[node]] = (*above, row[name] or "?")
    stacks = [(paths[*(row[place] for place in front), row[node]], row[column] or 0) for row in rows]
    unit = "CPU" if is_cpu else "GPU"
    return _widest(chart_of_stacks(f"Calls by {unit} time", stacks, unit, _NARROW))


def stacks(table: Summary) -> Flames:
    """Show call stacks as a flame graph: samples, or another kind if there are none."""
    kind = max((key[-1] for key in table.stacks), key=_KINDS.index, default=SAMPLES)
    paths = [
        ((*map(str, key[:-1]), *path), time)
        for key, of_key in table.stacks.items()
        if key[-1] == kind
        for path, time in by_function(of_key)
    ]
    return _widest(chart_of_stacks(f"Call stacks by time: {kind}", paths, "CPU", _READABLE, str))


def _widest(chart: Flames) -> Flames:
    """Return a flame graph with its widest frames only: a picture of all may have megabytes."""
    widest = {id(frame) for frame in sorted(chart.frames, key=lambda frame: -frame.value)[:_FRAMES]}  # outer ones first
    return replace(chart, frames=tuple(frame for frame in chart.frames if id(frame) in widest))


def waits(table: Summary) -> Chart:
    """Show who waits for whom, for the ranks with most waiting; ten thousand ranks have millions of pairs."""
    late, ns = (table.columns.index(name) for name in ("late", "wait_ns"))
    sums = Counter[object](), Counter[object]()
    for row in table:
        for of_side, place in zip(sums, (0, late), strict=True):
            of_side[row[place]] += row[ns]
    rows, columns = map(_worst, sums)
    cells = {(row[0], row[late]): row[ns] for row in table if row[0] in rows and row[late] in columns}
    values = tuple(tuple(cells.get((row, column)) for column in columns) for row in rows)
    names = [tuple(str(name) for name in side) for side in (rows, columns)]
    title, waiting = "Who waits for whom", len(sums[0])
    title += f": the {len(rows)} of {waiting} that wait most" if len(rows) < waiting else ""
    return Matrix(title, names[0], names[1], values, "ns", ("waiting rank", "for rank"))


def _worst(sums: Counter[object]) -> list[object]:
    """Return the ranks with most waiting, in the order of ranks."""
    least = _LEAST * max(sums.values(), default=0)
    worst = (rank for rank, ns in sums.most_common(_SIDE) if ns >= least)
    return sorted(worst, key=lambda rank: order_of([rank]))


def _curves(table: Summary, value: str, unit: str, title: str, level: str | None = None) -> Lines:
    """Show values over time, a line for each division and level, or for those of one level.

    Of many lines, those with the largest values are shown beside the median of all.
    """
    front, place = table.columns.index("at_ns"), table.columns.index(value)
    lines = {
        key: [(row[front], row[place] or 0) for row in rows]
        for key, rows in by_front(table, "at_ns").items()
        if level in (None, *key)
    }
    most = sorted(lines, key=lambda key: -max(y for _, y in lines[key]))
    middle: tuple[Series, ...] = ()
    if len(lines) > len(_SERIES):
        most = most[: len(_SERIES) - 1]
        title = f"{title}: the {len(most)} of {len(lines)} with most"
        middle = (Series(f"median of {len(lines)}", GREY, _median(lines.values())),)
    same = {number for number in range(front) if len({key[number] for key in lines}) == 1}
    names = [_line_name(table.columns, key, same) for key in most]
    series = tuple(
        Series(name, colour, tuple(lines[key])) for name, key, colour in zip(names, most, _SERIES, strict=False)
    )
    return Lines(title, (*middle, *series), "ns", unit, is_stepped=True)


def _median(lines: Iterable[Sequence[Point]]) -> tuple[Point, ...]:
    """Return the median of lines, slice by slice."""
    return tuple(
        (median(at for at, _ in some), median(value for _, value in some)) for some in zip(*lines, strict=False)
    )


def _line_name(columns: Sequence[str], key: Row, same: Set[int]) -> str:
    """Return the name of a line by the values in which it differs from others."""
    differing = [number for number in range(len(key)) if number not in same] or range(len(key))
    words = ((columns[number], "-" if key[number] is None else str(key[number])) for number in differing)
    return " ".join(word if column == "level" else f"{column} {word}" for column, word in words)


def memory(table: Summary) -> Chart:
    """Show real memory if there is any: reserved addresses are no memory yet."""
    is_real = any(level == "REAL" for (level,) in table.values("level"))
    return _curves(table, "peak_bytes", "bytes", "Memory held", "REAL" if is_real else None)


def queue_depth(table: Summary) -> Chart:
    """Show the number of operations that wait on GPUs over time, from shortly before the first work on."""
    chart = _curves(table, "mean_depth", "", "Operations that wait on GPUs")
    lines = [line.points for line in chart.series]
    first = min((at for line in lines for at, (_, depth) in enumerate(line) if depth), default=0) - 1
    if first <= max(map(len, lines), default=0) / 2:
        return chart
    title = f"{chart.title}, after {readable(lines[0][first][0], 'ns')} without any"
    return replace(chart, title=title, series=tuple(replace(each, points=each.points[first:]) for each in chart.series))


def memory_steps(table: Summary) -> Chart:
    """Show the memory that each step leaves behind."""
    rows = table.values("step", "growth_bytes")
    points: Iterable[tuple[float, float]] = ((float(step), float(growth)) for step, growth in rows if step is not None)
    return Lines("Memory that steps leave behind", (Series("growth", PURPLE, tuple(points)),), "", "bytes")


def changes(table: Summary) -> Chart:
    """Show the changes between two sides: each part starts where the one before ends."""
    parts = table.values("part", "base_ns", "new_ns")
    ends = list(itertools.accumulate((new - base for _, base, new in parts), initial=sum(base for _, base, _ in parts)))
    bars = [(part, start, end) for (part, *_), (start, end) in zip(parts, pairwise(ends), strict=True)]
    changes = [change for change in bars if change[1] != change[2]] or bars[:1]
    return Bars(
        "What changed, from the base to this job",
        tuple(part for part, *_ in changes),
        (
            BarPart("longer", RED, tuple(max(0, end - start) for _, start, end in changes)),
            BarPart("shorter", GREEN, tuple(max(0, start - end) for _, start, end in changes)),
        ),
        "ns",
        starts=tuple(min(start, end) for _, start, end in changes),
        notes=tuple(f"{'+' if end > start else ''}{readable(end - start, 'ns')}" for _, start, end in changes),
    )


def _time_of(row: Mapping[str, float]) -> float:
    """Return the time of the dispatches of a kernel [ns]: bytes divided by their rate."""
    return row["dispatches"] * row["bytes"] / row["gb_per_s"] if row["bytes"] and row["gb_per_s"] else 0.0


def _roofs(peaks: Mapping[str, float]) -> list[tuple[float, str]]:
    """Return each peak once, with the names of all levels or types that have it.

    >>> _roofs({"L2": 10.0, "L1": 20.0, "LDS": 20.0})
    [(10.0, 'L2'), (20.0, 'L1, LDS')]
    """
    return [(peak, ", ".join(names)) for peak, names in by_key((peak, name) for name, peak in peaks.items()).items()]


def roofline(table: Summary) -> Lines:
    """Return the roofs of levels and types of operations, and kernels by their bytes from the farthest level."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.shortened(table.fetchall())]
    bandwidths = {row["level"]: row["peak_gb_per_s"] for row in rows if row["peak_gb_per_s"]}
    peaks = {row["type"]: row["peak_gflop_per_s"] for row in rows if row["type"] and row["peak_gflop_per_s"]}
    farthest = next(iter(bandwidths), None)
    kernels = {
        row["kernel"]: MarkedPoint(row["intensity"], row["gflop_per_s"], row["kernel"] or "?", _time_of(row))
        for row in rows
        if row["level"] == farthest and row["intensity"] and row["gflop_per_s"]
    }
    most = max(peaks.values(), default=0.0)
    if not farthest or not most:
        return Lines("Roofline", ())
    ridges = [most / bandwidth for bandwidth in bandwidths.values()]
    low = min([*(kernel.x for kernel in kernels.values()), min(ridges)]) / 4
    high = max([*(kernel.x for kernel in kernels.values()), max(ridges)]) * 4
    colours = itertools.cycle([colour for colour in (*_SERIES, BROWN) if colour != RED])  # kernels are red
    lines = [
        Series(level, next(colours), ((low, low * bandwidth), (most / bandwidth, most)))
        for bandwidth, level in _roofs(bandwidths)
    ]
    lines += (
        Series(kind, next(colours), ((peak / max(bandwidths.values()), peak), (high, peak)))
        for peak, kind in _roofs(peaks)
    )
    lines.append(Series("kernels, as large as their time", RED, (), tuple(list(kernels.values())[:_MARKED])))
    return Lines("Roofline", tuple(lines), "FLOP/byte", "GFLOP/s", is_log=True)
