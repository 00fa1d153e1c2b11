"""Pictures of tables for a screen: numbers over time, or from rank to rank, to take in at a glance.

The definition of a table names its picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from rocpd.base import by_key
from rocpd.summary.grouping import order_of
from rocpd.summary.result import Summary, by_front
from rocpd.table.cell import one_line, shorten, shorten_apart
from rocpd.table.human import LONGEST, MOST_LINES, Curve, Shade, curves, heat_map, matrix, mixed, parts, readable
from rocpd.table.palette import COLOURS, GREEN, PURPLE, SKY, Colour, Screen

_LONGEST = 16  # characters of a name in a matrix
_NUMBERS = "the numbers: --format csv"


class _Course(NamedTuple):
    """One row of a picture: rows of a table that differ only in time.

    Courses of different `kind`, such as levels of memory, are never put together.
    """

    label: str
    kind: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


def heat(table: Summary, screen: Screen) -> Iterator[str]:
    """Yield a map of ranks × time: the shade shows how busy, the colour with which kind of work."""
    courses = _by_host(table)
    names = ("busy_percent", "compute_percent", "exposed_communication_percent", "exposed_copies_percent")
    shades = {course.label: [_shade(table, row, names) for row in course.rows] for course in courses}
    groups = [*_grouped(courses)]
    lines = [
        (label, [mixed(cells) for cells in zip(*(shades[course.label] for course in some), strict=False)])
        for label, some in zip(_labels(groups), groups, strict=True)
    ]
    yield from heat_map(lines, _ends(table, courses), screen)
    yield ""
    yield f"busy: · ░ 25 %  ▒ 50 %  ▓ 75 %  █ 100 %  {screen.faint(_NUMBERS)}"
    if screen.colours:
        names_of_colours = ("compute", "communication", "copies")
        legend = "  ".join(f"{screen.paint('█', COLOURS[name])} {name}" for name in names_of_colours)
        yield f"most of it: {legend}"


def _by_host(table: Summary) -> list[_Course]:
    """Return the rows of a table as `_courses`; if ranks run on several hosts, the ranks of a host together."""
    courses = _courses(table)
    if not table.hosts:
        return courses
    hosts = by_key((one_line(table.hosts.get(course.rows[0][0], "?")), course) for course in courses)
    return [course._replace(kind=(host,)) for host, some in hosts.items() for course in some]


def _labels(groups: Sequence[Sequence[_Course]]) -> list[str]:
    """Return the labels of lines; the first line of each host has its name."""
    labels = [_label(some) for some in groups]
    hosts = [" ".join(some[0].kind) for some in groups]
    if len(set(hosts)) == 1:
        return labels
    known = [*dict.fromkeys(hosts)]
    short = dict(zip(known, shorten_apart(known, LONGEST - 1 - max(map(len, labels))), strict=True))
    width = max(map(len, short.values()))
    return [
        f"{'' if host == last else short[host]:{width}} {label}"
        for label, host, last in zip(labels, hosts, ["", *hosts], strict=False)
    ]


def _shade(table: Summary, row: Sequence[Any], names: tuple[str, ...]) -> Shade:
    busy, *parts = (row[table.columns.index(name)] or 0.0 for name in names)
    most = max(range(len(parts)), key=parts.__getitem__)
    return Shade(busy / 100, COLOURS[("compute", "communication", "copies")[most]])


def waits(table: Summary, screen: Screen) -> Iterator[str]:
    """Yield a matrix of who waits for whom; many ranks are put in groups."""
    first, second, end, time = map(table.columns.index, ("waiter", "late", "collectives", "wait_ns"))
    waits = [(row[first:second], row[second:end], row[time]) for row in table]
    names = sorted({name for waiter, late, _ in waits for name in (waiter, late)}, key=order_of)
    words = {name: " ".join(map(readable, name)) for name in names}
    least = max(map(len, words.values())) + 1
    groups = [list(part) for part in parts(names, min(MOST_LINES, max((screen.width - 18) // least, 1)))]
    at = {name: number for number, group in enumerate(groups) for name in group}
    values = [[0.0] * len(groups) for _ in groups]
    for waiter, late, wait in waits:
        values[at[waiter]][at[late]] += wait
    labels = [shorten(words[group[0]], _LONGEST) for group in groups]
    yield from matrix(labels, values, "waits ↓  for →", screen)
    each = f", each stands for {len(groups[0])} or more" if len(groups) < len(names) else ""
    yield screen.faint(f"█ {readable(max(map(max, values)), 'ns')}{each}")


def _over_time(table: Summary, screen: Screen, name: str, colour: Colour) -> Iterator[str]:
    """Yield one curve per rank, agent …; many are put in groups, which show their largest value."""
    column = table.columns.index(name)
    courses = _courses(table)
    values = {course.label: [row[column] or 0 for row in course.rows] for course in courses}
    lines = []
    for group in _grouped(courses):
        most = [max(each) for each in zip(*(values[course.label] for course in group), strict=False)]
        lines.append(Curve(_label(group), most, readable(max(most), table.fields[column].unit)))
    yield from curves(lines, _ends(table, courses), screen, colour)
    yield screen.faint(f"at the right: the most; {_NUMBERS}")


memory = partial(_over_time, name="peak_bytes", colour=PURPLE)
"""The memory held over time."""

queue_depth = partial(_over_time, name="mean_depth", colour=GREEN)
"""The number of operations that wait on GPUs over time."""


def steps(table: Summary, screen: Screen) -> Iterator[str]:
    """Yield the durations of steps, one after the other."""
    rows = sorted(table.values("at_ns", "mean_ns", "step"), key=lambda row: row[0] or 0)
    if len(rows) > 1:
        values = [mean for _, mean, _ in rows]
        line = Curve("mean", values, f"up to {readable(max(values), 'ns')}")
        yield from curves([line], (one_line(rows[0][2]), one_line(rows[-1][2])), screen, SKY)


def _courses(table: Summary) -> list[_Course]:
    """Return the rows of a table by the values in front of the time."""
    columns = table.columns[: table.columns.index("at_ns")]
    return [
        _Course(_name(columns, key), tuple(value for value in key if isinstance(value, str)), rows)
        for key, rows in by_front(table, "at_ns").items()
    ]


def _name(columns: Sequence[str], key: Sequence[Any]) -> str:
    """Return a label: a number comes after the name of its column.

    >>> _name(("rank", "agent", "level"), (0, 2, "REAL"))
    'rank 0 agent 2 REAL'
    """
    pairs = zip(columns, key, strict=True)
    return " ".join(one_line(v) if isinstance(v, str) else f"{column} {readable(v)}" for column, v in pairs)


def _grouped(courses: Sequence[_Course]) -> Iterator[Sequence[_Course]]:
    """Yield the courses of each line: each course alone, as long as there are few."""
    by_kind = by_key((course.kind, course) for course in courses)
    if len(courses) <= MOST_LINES or len(by_kind) >= MOST_LINES:  # each host is a kind
        yield from parts(courses, MOST_LINES)
        return
    for of_kind in by_kind.values():
        yield from parts(of_kind, MOST_LINES // len(by_kind))


def _label(group: Sequence[_Course]) -> str:
    return group[0].label if len(group) == 1 else f"{group[0].label} +{len(group) - 1}"


def _ends(table: Summary, courses: Sequence[_Course]) -> tuple[str, str]:
    """Return the times at which the first and the last slice start."""
    at = table.columns.index("at_ns")
    times = [row[at] for course in courses for row in (course.rows[0], course.rows[-1])]
    return readable(min(times), "ns"), readable(max(times), "ns")
