"""Random statements that the index should answer: expressions of one kind over the stored views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

NUMBERS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("id", "start", "end", "duration", "queue_id", "stream_id", "grid_x", "rank", "vgpr_count", "tid"),
    "regions": ("id", "start", "end", "duration", "event_id", "stack_id", "rank", "tid", "pid"),
    "memory_copies": ("id", "start", "end", "duration", "size", "rank", "stream_id", "dst_agent_abs_index"),
    "memory_allocations": ("id", "start", "duration", "size", "rank", "address"),
    "samples": ("id", "rank", "timestamp"),
    "pmc_events": ("id", "rank", "event_id"),
    "rocpd_kernel_dispatch": ("id", "start", "end", "kernel_id", "queue_id", "stream_id", "grid_size_x"),
    "rocpd_memory_copy": ("id", "start", "end", "size", "stream_id"),
}
TEXTS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("name", "category", "stream", "hostname", "region", "agent_type"),
    "regions": ("name", "category", "hostname"),
    "memory_copies": ("name", "category", "hostname"),
    "memory_allocations": ("type", "level", "hostname"),
    "samples": ("name", "hostname"),
    "pmc_events": ("name", "hostname"),
    "rocpd_kernel_dispatch": ("guid",),
    "rocpd_memory_copy": ("guid",),
}
_LITERALS = (0, 1, 2, 3, 7, 10, 100, 1000, 4096, 1_000_000, -1, "1e3", "5.0")
_WORDS = ("gemm", "GEMM", "a", "hip", "Memcpy", "", "é", "it''s", "100%", "_")


class Source(NamedTuple):
    """Columns of a FROM: of numbers, of texts, and one that has one value in a rank."""

    numbers: list[str]
    texts: list[str]
    key: str


def columns_of(view: str, alias: str = "") -> Source:
    """The columns of a view."""
    numbers, texts = ([f'{alias}"{name}"' for name in names[view]] for names in (NUMBERS, TEXTS))
    return Source(numbers, texts, alias + ("guid" if view.startswith("rocpd_") else "rank"))


@st.composite
def numbers(draw: st.DrawFn, source: Source, depth: int = 2) -> str:
    """A whole number of each row."""
    column = st.sampled_from(source.numbers)
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(column)
    inner = numbers(source, depth - 1)
    kind = draw(st.sampled_from(("+", "-", "*", "/", "%", "case", "coalesce", "nullif", "abs", "minus", "length")))
    if kind in "+-*/%":
        right = draw(st.one_of(inner, st.sampled_from(("1", "2", "7", "1000", "-3"))))
        return f"({draw(inner)} {kind} {right})"
    if kind == "case":
        return f"(CASE WHEN {draw(conditions(source, depth - 1))} THEN {draw(inner)} ELSE {draw(inner)} END)"
    if kind == "length":
        return f"length({draw(st.sampled_from(source.texts))})"
    if kind == "minus":
        return f"(-{draw(inner)})"
    return f"abs({draw(inner)})" if kind == "abs" else f"{kind}({draw(inner)}, {draw(inner)})"


@st.composite
def conditions(draw: st.DrawFn, source: Source, depth: int = 2) -> str:
    """A condition on each row."""
    kind = draw(st.integers(0, 9 if depth else 6))
    number, text = numbers(source, 0), st.sampled_from(source.texts)
    compare = draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=", "!=")))
    if kind == 0:
        return f"{draw(number)} {compare} {draw(st.sampled_from(_LITERALS))}"
    if kind == 1:
        return f"{draw(number)} {compare} {draw(number)}"
    if kind == 2:
        return f"{draw(text)} {compare} '{draw(st.sampled_from(_WORDS))}'"
    if kind == 3:
        pattern = "".join(draw(st.lists(st.sampled_from(("%", "_", "e", "M", "hip", "a", " ", "<")), max_size=4)))
        return f"{draw(text)} {draw(st.sampled_from(('LIKE', 'NOT LIKE')))} '{pattern}'"
    if kind == 4:
        pattern = "".join(draw(st.lists(st.sampled_from(("*", "?", "e", "M", "%", "_", "hip")), max_size=4)))
        return f"{draw(text)} GLOB '{pattern}'"
    if kind == 5:
        subject = draw(st.one_of(number, text))
        return f"{subject} IS {draw(st.sampled_from(('', 'NOT ')))}NULL"
    if kind == 6:
        few = ", ".join(str(each) for each in draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
        return f"{draw(number)} {draw(st.sampled_from(('', 'NOT ')))}IN ({few})"
    inner = conditions(source, depth - 1)
    if kind == 7:
        return f"(NOT ({draw(inner)}))"
    if kind == 8:
        return f"{draw(number)} BETWEEN {draw(st.integers(-5, 50))} AND {draw(st.integers(0, 5000))}"
    return f"(({draw(inner)}) {draw(st.sampled_from(('AND', 'OR')))} ({draw(inner)}))"


@st.composite
def aggregates(draw: st.DrawFn, source: Source) -> str:
    """An aggregate of whole numbers or texts."""
    name = draw(st.sampled_from(("count(*)", "count", "sum", "total", "avg", "min", "max", "least text")))
    only = f" FILTER (WHERE {draw(conditions(source, 1))})" if draw(st.integers(0, 3)) == 0 else ""
    if name == "count(*)":
        return name + only
    if name == "least text":
        return f"min({draw(st.sampled_from(source.texts))}){only}"
    return f"{name}({draw(numbers(source))}){only}"


@st.composite
def typed_statements(draw: st.DrawFn) -> str:
    """A statement over one stored view, or groups of two that are joined: rows, groups, or the first of an order."""
    kind = draw(st.sampled_from(("groups", "by rank", "total", "rows", "first", "distinct")))
    sources = [_views(), _views(), _joins(), _unions()] if kind in ("groups", "by rank", "total") else [_views()]
    source, clause = draw(st.one_of(sources))
    where = f" WHERE {draw(conditions(source))}" if draw(st.booleans()) else ""
    keys = draw(st.lists(st.one_of(st.sampled_from(source.texts), numbers(source, 1)), min_size=1, max_size=2))
    if kind == "groups":
        return _groups(draw, source, clause + where, keys)
    if kind == "by rank":
        return _groups(draw, source, clause + where, [source.key, *keys])
    if kind == "total":
        items = draw(st.lists(aggregates(source), min_size=1, max_size=3))
        return f"SELECT {', '.join(items)} FROM {clause}{where}"
    if kind == "distinct":
        return f"SELECT DISTINCT {', '.join(keys)} FROM {clause}{where}"
    columns = [*draw(st.lists(st.sampled_from(source.numbers), max_size=3)), *keys]
    if kind == "rows":
        return f"SELECT {draw(st.sampled_from(('*', ', '.join(columns))))} FROM {clause}{where}"
    tails = ("ASC", "DESC", "", "COLLATE NOCASE DESC", "COLLATE BINARY")
    order = ", ".join(f"{key} {draw(st.sampled_from(tails))}" for key in keys)
    return f"SELECT {', '.join(columns)} FROM {clause}{where} ORDER BY {order} LIMIT {draw(st.integers(0, 30))}"


@st.composite
def _views(draw: st.DrawFn) -> tuple[Source, str]:
    """A view, or some of its rows."""
    view = draw(st.sampled_from(sorted(NUMBERS)))
    source = columns_of(view)
    return source, view if draw(st.integers(0, 4)) else f"(SELECT * FROM {view} WHERE {draw(conditions(source, 1))})"


@st.composite
def _joins(draw: st.DrawFn) -> tuple[Source, str]:
    """Two views that are joined inside of ranks."""
    views = tuple(draw(st.lists(st.sampled_from(sorted(NUMBERS)), min_size=2, max_size=2)))
    first, second = columns_of(views[0], "a."), columns_of(views[1], "b.")
    source = Source(first.numbers + second.numbers, first.texts + second.texts, first.key)
    left, right = draw(st.sampled_from(first.numbers)), draw(st.sampled_from(second.numbers))
    word = draw(st.sampled_from(("JOIN", "LEFT JOIN", "INNER JOIN")))
    also = f" AND {draw(conditions(source, 1))}" if draw(st.booleans()) else ""
    return source, f"{views[0]} a {word} {views[1]} b ON a.guid = b.guid AND {left} = {right}{also}"


@st.composite
def _unions(draw: st.DrawFn) -> tuple[Source, str]:
    """Rows of two views, one after the other."""
    sides = []
    for view in draw(st.lists(st.sampled_from(sorted(NUMBERS)), min_size=2, max_size=2)):
        source = columns_of(view)
        items = f"{draw(numbers(source, 1))} AS n, {draw(st.sampled_from(source.texts))} AS t, guid"
        where = f" WHERE {draw(conditions(source, 1))}" if draw(st.booleans()) else ""
        sides.append(f"SELECT {items} FROM {view}{where}")
    return Source(["n"], ["t"], "guid"), f"({' UNION ALL '.join(sides)})"


def _groups(draw: st.DrawFn, source: Source, clause: str, keys: Sequence[str]) -> str:
    items = [*keys, *draw(st.lists(aggregates(source), min_size=1, max_size=3))]
    having = f" HAVING count(*) > {draw(st.integers(0, 4))}" if draw(st.integers(0, 3)) == 0 else ""
    order = f" ORDER BY {len(items)} DESC, 1 LIMIT {draw(st.integers(1, 9))}" if draw(st.integers(0, 2)) == 0 else ""
    listed = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
    return f"SELECT {listed} FROM {clause} GROUP BY {', '.join(keys)}{having}{order}"
