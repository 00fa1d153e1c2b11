"""Random SELECTs over the schema of a job: what people write, and what a planner could get wrong.

A statement says by which result columns it is ordered, so that ties under LIMIT are no difference. Rows that SQLite
itself may choose freely (bare columns of a group, LIMIT without a total order inside) are never asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from hypothesis import strategies as st

Columns: TypeAlias = Mapping[str, tuple[str, ...]]
Values: TypeAlias = Mapping[str, Sequence[Any]]

EVENTS = ("kernels", "regions", "memory_copies", "memory_allocations", "samples", "markers", "pmc_events")
LINKED = ("kernels", "regions", "memory_copies", "memory_allocations", "samples", "markers")
OTHERS = (
    "processes",
    "threads",
    "kernel_symbols",
    "region_args",
    "events_args",
    "counters_collection",
    "regions_and_samples",
)
BASES = (
    "rocpd_region", "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_event", "rocpd_string", "rocpd_arg",
    "rocpd_info_thread", "rocpd_info_process", "rocpd_info_agent", "rocpd_pmc_event", "rocpd_metadata",
)  # fmt: skip
SUMMARIES = ("top_kernels", "top", "busy", "kernel_summary", "memory_copy_summary", "memory_allocation_summary")
COMPARED = ("=", "<>", "!=", "<", ">", "<=", ">=", "==", "IS", "IS NOT")
PATTERNS = ("LIKE '%e%'", "LIKE 'g_mm'", "GLOB 'g*'")
FOREIGN = (
    ("rocpd_region", "event_id", "rocpd_event"),
    ("rocpd_region", "name_id", "rocpd_string"),
    ("rocpd_kernel_dispatch", "event_id", "rocpd_event"),
    ("rocpd_kernel_dispatch", "kernel_id", "rocpd_info_kernel_symbol"),
    ("rocpd_event", "category_id", "rocpd_string"),
    ("rocpd_memory_copy", "dst_agent_id", "rocpd_info_agent"),
    ("rocpd_pmc_event", "event_id", "rocpd_event"),
    ("rocpd_arg", "event_id", "rocpd_event"),
)
LITERALS = (
    "0", "1", "2", "5", "16", "-3", "1.5", "1000", "''", "'0'", "'1'", "'2'", "'5'", "'16'", "'gemm'", "NULL", "2e3",
)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """SQL, its parameters, and which result columns it is ordered by (None: not ordered)."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any] | None = None
    order: tuple[int, ...] | None = None
    limited: bool = False


@dataclass
class From:
    """A FROM clause: its text, what its columns are called, and those that tell its rows apart in the whole job."""

    text: str
    columns: list[str]
    unique: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass
class Grammar:
    """Makes one statement."""

    random: Random
    known: Columns
    values: Values
    ctes: list[str] = field(default_factory=list)
    bound: list[Any] = field(default_factory=list)
    parametric: str = ""
    _aliases: int = 0

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, percent: int) -> bool:
        return self.random.randint(1, 100) <= percent

    def alias(self) -> str:
        self._aliases += 1
        return f"{self.pick('t', 'k', 'r')}{self._aliases}"

    # --- sources

    def source(self, depth: int) -> From:
        """One FROM clause."""
        kind = self.random.randint(0, 99)
        if kind < 45 or depth == 0:
            return self.relation()
        if kind < 62:
            return self.local_join()
        if kind < 80:
            return self.subquery(depth)
        if kind < 90:
            return self.join_with_gathered(depth)
        if kind < 96:
            return self.union(depth)
        return self.foreign_join()

    def relation(self, *names: str) -> From:
        kind = self.random.randint(0, 9)
        pool = names or (EVENTS if kind < 5 else OTHERS if kind < 7 else BASES if kind < 9 else SUMMARIES)
        name = self.pick(*pool)
        columns = list(self.known[name])
        unique = ("guid", "id") if {"guid", "id"} <= set(columns) and name not in SUMMARIES else ()
        keys = tuple({"guid", "rank"} & set(columns)) if name not in SUMMARIES else ()
        if self.chance(40):
            alias = self.alias()
            return From(f"{self.spelled(name)} {self.pick('', 'AS ')}{alias}", [f"{alias}.{q(c)}" for c in columns],
                        tuple(f"{alias}.{c}" for c in unique), tuple(f"{alias}.{c}" for c in sorted(keys)))  # fmt: skip
        return From(self.spelled(name), [q(c) for c in columns], unique, tuple(sorted(keys)))

    def spelled(self, name: str) -> str:
        return str(self.pick(name, name, name, f'"{name}"', name.upper(), f"[{name}]"))

    def local_join(self) -> From:
        """Two relations of one rank, as AMD's documents join them, or two views by what launched what."""
        a, b = self.alias(), self.alias()
        side = self.pick("JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN")
        if self.chance(50):
            left, column, right = self.pick(*FOREIGN)
            on = [f"{a}.guid = {b}.guid", f"{b}.id = {a}.{column}"]
        else:
            left, right = self.pick(*LINKED), self.pick(*LINKED)
            key = self.pick("guid", "guid", "rank")
            on = [f"{b}.{key} {self.pick('=', '==')} {a}.{key}", f"{a}.stack_id = {b}.stack_id"]
        if self.chance(30):
            on.reverse()
        text = f"{left} {a} {side} {right} {b} ON {' AND '.join(on)}"
        columns = [f"{n}.{q(c)}" for n, name in ((a, left), (b, right)) for c in self.known[name]]
        if left == "rocpd_metadata":
            return From(text, columns)
        return From(text, columns, (f"{a}.guid", f"{a}.id", f"{b}.guid", f"{b}.id"), (f"{a}.guid", f"{b}.guid"))

    def foreign_join(self) -> From:
        """Joins that cross ranks, or look as if they did: small tables only."""
        a, b = self.alias(), self.alias()
        on = self.pick(
            f"{a}.pid = {b}.pid", f"{a}.nid = {b}.nid", f"{a}.guid <> {b}.guid", f"{a}.guid = {b}.command", "1"
        )
        how = self.pick(
            f"JOIN threads {b} ON {on.replace('command', 'name')}", f", processes {b}", f"CROSS JOIN processes {b}",
            f"LEFT JOIN processes {b} ON {on}", f"JOIN processes {b} USING (pid)", f"NATURAL JOIN processes {b}",
            f"LEFT JOIN processes {b} USING (guid)", f"JOIN processes {b} USING (guid, pid)",
        )  # fmt: skip
        return From(f"processes {a} {how}", [f"{a}.pid", f"{a}.command", f"{a}.rank", f"{a}.guid", f"{b}.rank"],
                    (), (f"{a}.guid",) if "USING (guid" in how else ())  # fmt: skip

    def join_with_gathered(self, depth: int) -> From:
        """A relation beside a small summary of another."""
        a, b = self.alias(), self.alias()
        left = self.pick(*EVENTS)
        call = self.pick("count(*)", "sum(duration)", "min(duration)")
        inner = f"SELECT name, {call} AS n FROM {self.pick(*EVENTS)} GROUP BY name"
        side = self.pick("JOIN", "LEFT JOIN", "CROSS JOIN")
        on = f"{b}.name {self.pick('=', 'IS')} {a}.name" + ("" if self.chance(70) else f" AND {b}.n > 1")
        columns = [*(f"{a}.{q(c)}" for c in self.known[left]), f"{b}.name", f"{b}.n"]
        return From(f"{left} {a} {side} ({inner}) {b} ON {on}", columns, (), (f"{a}.guid",))

    def subquery(self, depth: int) -> From:
        """A SELECT in the FROM, or in a WITH."""
        text, names, keys = self.inner(depth - 1)
        alias = self.alias()
        if self.chance(30):
            name = f"{alias}_cte"
            self.ctes.append(f"{name} AS ({text})")
            return From(f"{name} {alias}", [f"{alias}.{n}" for n in names], (), tuple(f"{alias}.{k}" for k in keys))
        return From(f"({text}) {self.pick('', 'AS ')}{alias}", [f"{alias}.{n}" for n in names], (),
                    tuple(f"{alias}.{k}" for k in keys))  # fmt: skip

    def union(self, depth: int) -> From:
        """UNION ALL of two SELECTs with one shape."""
        alias = self.alias()
        chosen = self.pick(("guid", "name", "duration"), ("rank", "start", "stack_id"), ("name", "nid", "category"))
        sides = []
        for _ in range(2):
            where = f" WHERE {self.predicate(From('', list(chosen)), 1)}" if self.chance(40) else ""
            sides.append(f"SELECT {', '.join(chosen)} FROM {self.pick('kernels', 'regions', 'memory_copies')}{where}")
        if self.chance(15):
            sides = [
                f"SELECT name, count(*) AS n, max(nid) AS category FROM {v} GROUP BY name"
                for v in ("kernels", "regions")
            ]
            chosen = ("name", "n", "category")
        names = [f"{alias}.{c}" for c in chosen]
        return From(
            f"({' UNION ALL '.join(sides)}) {alias}",
            names,
            (),
            tuple(n for n in names if n.endswith((".guid", ".rank"))),
        )

    def inner(self, depth: int) -> tuple[str, list[str], list[str]]:
        """A SELECT with named columns, whose rows do not depend on SQLite's choices; its names and its keys."""
        source = self.source(depth)
        where = f" WHERE {self.predicate(source, 1)}" if self.chance(40) else ""
        if self.chance(45):
            groups = [self.scalar(source, 1) for _ in range(self.pick(1, 2))]
            if source.keys and self.chance(40):
                groups[0] = self.pick(*source.keys)
            aggregates = [self.aggregate(source) for _ in range(self.pick(1, 2))]
            names = [f"g{i}" for i in range(len(groups))] + [f"a{i}" for i in range(len(aggregates))]
            shown = ", ".join(f"{e} AS {n}" for e, n in zip([*groups, *aggregates], names, strict=True))
            return f"SELECT {shown} FROM {source.text}{where} GROUP BY {', '.join(groups)}", names, []
        chosen = [self.pick(*source.columns) for _ in range(self.pick(1, 2, 3))] + (
            [self.scalar(source, 2)] if self.chance(50) else []
        )
        names = []
        items: list[str] = []
        keys: list[str] = []
        if source.keys and self.chance(60):
            names, items, keys = ["gid"], [f"{self.pick(*source.keys)} AS gid"], ["gid"]
        for i, expression in enumerate(chosen):
            names.append(f"x{i}")
            items.append(f"{expression} AS x{i}")
        tail = ""
        if source.unique and self.chance(30):
            tail = f" ORDER BY {', '.join(source.unique)}" + (
                f" LIMIT {self.pick(1, 3, 10, 50)}" if self.chance(60) else ""
            )
        distinct = "DISTINCT " if not tail and self.chance(15) else ""
        return f"SELECT {distinct}{', '.join(items)} FROM {source.text}{where}{tail}", names, keys

    # --- expressions

    def literal(self) -> str:
        if self.parametric and self.chance(25):
            value = self.pick(0, 5, 16, "gemm", 1.5, None, "1000", b"x")
            if self.parametric == "?":
                self.bound.append(value)
                return "?"
            self.bound.append(value)
            return f":p{len(self.bound) - 1}"
        return str(self.pick(*LITERALS))

    def comparable(self, column: str) -> str:
        """A literal that may be equal to a value of the column: a value that it has, or its text, or its number."""
        known_values = self.values.get(column.split(".")[-1].strip('"').lower(), ())
        if not known_values or self.chance(40):
            return self.literal()
        value = self.pick(*known_values)
        text = str(value).replace("'", "''")
        return str(self.pick(f"'{text}'", text if isinstance(value, (int, float)) else f"'{text}'"))

    def scalar(self, source: From, depth: int) -> str:
        column = self.pick(*source.columns)
        kind = self.random.randint(0, 19) if depth else 0
        if kind < 9:
            return str(column)
        left = self.scalar(source, depth - 1)
        return str(self.pick(
            f"({left} {self.pick('+', '-', '*', '/', '%')} {self.literal()})",
            f"{column} + {self.literal()}",
            f"{column} / 1000",
            f"({column} || {self.pick(*source.columns)})",
            f"coalesce({left}, {self.literal()})",
            f"CASE WHEN {self.predicate(source, depth - 1)} THEN {left} ELSE {self.literal()} END",
            f"CASE {column} WHEN {self.comparable(column)} THEN {self.literal()} END",
            f"CAST({column} AS {self.pick('INTEGER', 'TEXT', 'REAL', 'NUMERIC')})",
            f"length({column})",
            f"substr({column}, 1, {self.pick(1, 3)})",
            f"{self.pick('upper', 'lower', 'typeof', 'abs', 'quote')}({column})",
            f"{self.pick('max', 'min')}({column}, {self.literal()})",
            f"nullif({column}, {self.literal()})",
            f"iif({self.predicate(source, 0)}, {column}, {self.literal()})",
            f"-{column}",
            f"({column} & 7)",
            self.literal(),
        ))  # fmt: skip

    def predicate(self, source: From, depth: int) -> str:
        column = self.pick(*source.columns)
        kind = self.random.randint(0, 9) if depth else 0
        if kind >= 6:
            left, right = self.predicate(source, depth - 1), self.predicate(source, depth - 1)
            return str(self.pick(f"{left} AND {right}", f"({left} OR {right})", f"NOT ({left})", f"{left} OR {right}"))
        return str(self.pick(
            f"{column} {self.pick(*COMPARED)} {self.comparable(column)}",
            f"{self.comparable(column)} {self.pick('=', '<', '>')} {column}",
            f"{column} {self.pick('=', '<', '>')} {self.pick(*source.columns)}",
            f"{column} IS {self.pick('NULL', 'NOT NULL')}",
            f"{column} {self.pick('', 'NOT ')}BETWEEN {self.literal()} AND {self.literal()}",
            f"{column} {self.pick('', 'NOT ')}IN ({self.comparable(column)}, {self.literal()})",
            f"{column} {self.pick('', 'NOT ')}{self.pick(*PATTERNS)}",
            f"{column}",
            f"{column} % 2 = 0",
        ))  # fmt: skip

    def aggregate(self, source: From) -> str:
        argument = self.scalar(source, 1)
        call = self.pick(
            "count(*)", f"count({argument})", f"sum({argument})", f"total({argument})", f"min({argument})",
            f"max({argument})", f"avg({argument})", f"SUM({argument})", "COUNT(*)",
        )  # fmt: skip
        if self.chance(12):
            return f"count(DISTINCT {argument})"
        if self.chance(15):
            return f"{call} FILTER (WHERE {self.predicate(source, 1)})"
        return str(call)

    # --- statements

    def statement(self) -> Statement:
        self.parametric = self.pick("", "", "?", ":")
        kind = self.random.randint(0, 99)
        if kind < 42:
            made = self.rows()
        elif kind < 90:
            made = self.groups()
        else:
            made = self.windows()
        sql, order, limited = made
        if self.ctes:
            sql = f"WITH {', '.join(self.ctes)} {sql}"
            if self.parametric == "?":  # CTEs come first in the text, but were drawn in between
                sql, self.bound = without_parameters(sql, self.bound), []
        if self.parametric == ":":
            parameters: Any = {f"p{i}": value for i, value in enumerate(self.bound)} or None
        else:
            # Parts of alternatives that were not taken have drawn values too.
            sql, parameters = renumbered(sql, self.bound)
        return Statement(sql + self.pick("", "", ";"), parameters, order, limited)

    def tail(self, count: int, unique: Sequence[str]) -> tuple[str, tuple[int, ...] | None, bool]:
        """ORDER BY result columns, then LIMIT."""
        if not self.chance(55):
            return ("", None, False)
        places = [self.random.randint(0, count - 1) for _ in range(self.pick(1, 2))]
        terms = [f"{place + 1}{self.pick('', '', ' DESC', ' ASC')}" for place in places]
        text = f" ORDER BY {', '.join([*terms, *unique])}"
        limited = self.chance(50)
        if limited:
            text += f" LIMIT {self.pick(0, 1, 3, 10, 100)}" + (
                f" OFFSET {self.pick(1, 2, 7)}" if self.chance(30) else ""
            )
        return text, tuple(places), limited

    def named_item(self, index: int, expression: str) -> str:
        return str(self.pick(expression, expression, f"{expression} AS c{index}", f'{expression} "a name {index}"'))

    def rows(self) -> tuple[str, tuple[int, ...] | None, bool]:
        source = self.source(2)
        items = [self.scalar(source, 2) for _ in range(self.pick(1, 2, 3))]
        where = f" WHERE {self.predicate(source, 2)}" if self.chance(70) else ""
        if self.chance(10):
            tail, order, limited = ("", None, False)
            return f"SELECT * FROM {source.text}{where}{tail}", order, limited
        distinct = self.chance(20)
        unique = () if distinct or not self.chance(50) else source.unique
        tail, order, limited = self.tail(len(items), unique)
        named = ", ".join(self.named_item(i, item) for i, item in enumerate(items))
        return f"SELECT {'DISTINCT ' if distinct else ''}{named} FROM {source.text}{where}{tail}", order, limited

    def groups(self) -> tuple[str, tuple[int, ...] | None, bool]:
        source = self.source(2)
        where = f" WHERE {self.predicate(source, 2)}" if self.chance(50) else ""
        groups = [self.scalar(source, 1) for _ in range(self.pick(0, 1, 1, 2))]
        if groups and source.keys and self.chance(25):
            groups[0] = self.pick(*source.keys)
        aggregates = [self.aggregate(source) for _ in range(self.pick(1, 2, 3))]
        over = [f"sum({a}) OVER ()" if "sum(" in a and self.chance(20) else a for a in aggregates]
        over = [f"{a} * 1.0 / {self.literal()}" if self.chance(10) else a for a in over]
        shown = groups if self.chance(85) else []
        items = [*shown, *over]
        named, by = [], []
        for i, item in enumerate(items):
            alias = self.chance(40) or item not in groups
            named.append(f"{item} AS c{i}" if alias else item)
            if i < len(shown):
                by.append(self.pick(item, str(i + 1), f"c{i}") if alias else self.pick(item, str(i + 1)))
        by = by or groups
        clause = f" GROUP BY {', '.join(by)}" if by else ""
        if self.chance(25):
            compared = [f"{groups[0]} {self.pick('=', '>', 'IS NOT')} {self.comparable(groups[0])}"] if groups else []
            compared += [f"CASE {groups[0]} WHEN {self.comparable(groups[0])} THEN 1 END"] if groups else []
            condition = self.pick(f"{aggregates[0]} > {self.literal()}", f"count(*) > {self.pick(1, 2)}", *compared)
            clause += f" HAVING {condition}"
        tail, order, limited = self.tail(len(items), ())
        if any(name in source.text.lower() for name in SUMMARIES):
            # SQLite 3.53.4 takes the descending order of such a view for the ascending one of GROUP BY.
            tail, order, limited = "", None, False
        if groups and not limited and self.chance(15):
            tail, order = f" ORDER BY {aggregates[0]}", None
        return f"SELECT {', '.join(named)} FROM {source.text}{where}{clause}{tail}", order, limited

    def windows(self) -> tuple[str, tuple[int, ...] | None, bool]:
        name = self.pick("kernels", "regions", "memory_copies")
        call = self.pick("row_number()", "sum(duration)", "lag(start)", "count(*)", "rank()")
        part = self.pick(
            "PARTITION BY guid ", "PARTITION BY rank ", "PARTITION BY rank, name ", "PARTITION BY name ", ""
        )
        over = f"{call} OVER ({part}ORDER BY {self.pick('guid, id', 'start, guid, id')})"
        tail, order, limited = self.tail(2, ("guid", "id"))
        return f"SELECT {self.pick('name', 'id', 'duration')}, {over} AS w FROM {name}{tail}", order, limited


def q(column: str) -> str:
    """Quote what is a keyword or no name."""
    return (
        column if column.isidentifier() and column not in ("end", "END", "order", "value", "group") else f'"{column}"'
    )


def without_parameters(sql: str, bound: Sequence[Any]) -> str:
    """Put NULL for every `?`."""
    return sql.replace("?", "NULL")


def renumbered(sql: str, bound: Sequence[Any]) -> tuple[str, Sequence[Any] | None]:
    """Return a value for every `?` that is left in the text."""
    count = sql.count("?")
    values = [*bound, *([0] * count)][:count]
    return sql, values or None


@st.composite
def statements(draw: st.DrawFn, known: Columns, values: Values, shrinks: bool) -> Statement:
    """Random SELECTs over relations with `known` columns, comparing with `values` that these have.

    `shrinks`: Hypothesis draws each part, and makes a statement that fails smaller: half of the time of a test.
    """
    return Grammar(draw(st.randoms(use_true_random=not shrinks)), known, values).statement()
