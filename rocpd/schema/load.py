"""Reads `sql/tables` and `sql/views`: their order, columns, documentation, units and kinds.

The `.sql` files are the only definition of tables and views, and no other module reads their texts: a view comes as
columns, tables and conditions, which others put together. The texts refer to rules of the field by name:
`{{valid_times}}`, or `{{valid_times_of_M}}` for columns of an alias, and `{{copy_agent}}`. The texts are rocpd's own,
one column or table a line, so that patterns are enough to read them. Never talks to a database.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rocpd.base import ViewTextError, frozen
from rocpd.schema.rules.events import COPY_AGENT, valid_times_of

_COMMENT = re.compile(
    r"(?s)(?:since (?P<since>\d+\.\d+\.\d+): )?(?P<doc>.*?)(?: \[(?P<unit>[^\]]+)\])?(?: \{(?P<kind>\w+)\})?"
)
_COLUMN = re.compile(r'\b(?P<alias>[A-Za-z]\w*)\.(?P<quote>"?)(?P<column>\w+)(?P=quote)')
_RELATION = re.compile(r'\b(?:FROM|JOIN)\s+"(?P<name>\w+)"(?: (?P<alias>\w+))?')
STRING = re.compile(r"'[^']*'")
"""A literal in SQL; a literal with a quote in it counts as two."""


@frozen
class Comment:
    """A comment in parts: `since 3.0.1: meaning [unit] {kind}`; all parts but the meaning may be empty."""

    doc: str
    unit: str
    since: str
    kind: str


def read_comment(text: str) -> Comment:
    """Return the parts of a comment.

    >>> read_comment("since 3.0.2: time in the graph [ns] {integer}")
    Comment(doc='time in the graph', unit='ns', since='3.0.2', kind='integer')
    """
    said = _COMMENT.fullmatch(text)
    assert said  # as any text is
    return Comment(said["doc"], *(said[part] or "" for part in ("unit", "since", "kind")))


def head_comment(text: str) -> str:
    """Return the comment lines above CREATE."""
    return "\n".join(line[3:] for line in text.split("CREATE", 1)[0].splitlines() if line.startswith("-- "))


def strip_comments(text: str) -> str:
    """Return one of rocpd's `.sql` files without its `-- …` comments (no string in them holds `-- `)."""
    return "\n".join(line.rstrip() for line in re.sub(r"-- .*$", "", text, flags=re.M).splitlines() if line.strip())


def clauses(select: str) -> dict[str, list[str]]:
    """Return clause -> its lines: a line that is not indented names a clause; the first clause of a name counts."""
    lines_of: dict[str, list[str]] = {}
    for clause in re.split(r"\n(?=\S)", select):
        name, *lines = clause.splitlines()
        lines_of.setdefault(name, lines)
    return lines_of


def columns_used(sql: str) -> tuple[tuple[str, str], ...]:
    """Return (alias, column) of every `alias.column` in SQL, each once.

    >>> columns_used("K.end - K.start || ' A.name' || K.start")
    (('K', 'end'), ('K', 'start'))
    """
    return tuple(dict.fromkeys((match["alias"], match["column"]) for match in _COLUMN.finditer(STRING.sub("", sql))))


def bare_column(expression: str) -> tuple[str, str] | None:
    """Return (alias, column) of an expression that is only a column, else None.

    >>> bare_column('K."end"'), bare_column("K.end - K.start")
    (('K', 'end'), None)
    """
    match = _COLUMN.fullmatch(expression)
    return (match["alias"], match["column"]) if match else None


def relations_named(select: str) -> tuple[tuple[str, str], ...]:
    """Return (relation, its alias or name) of all relations with quoted names that a text selects from.

    >>> relations_named('SELECT * FROM "kernels" V JOIN "nodes"')
    (('kernels', 'V'), ('nodes', 'nodes'))
    """
    return tuple((match["name"], match["alias"] or match["name"]) for match in _RELATION.finditer(select))


def replace_relations(select: str, others: Mapping[str, str]) -> str:
    """Return a text with other SQL in place of relations that it selects from.

    >>> replace_relations('SELECT * FROM "kernels" V', {"kernels": "(SELECT 1)"})
    'SELECT * FROM (SELECT 1) V'
    """

    def replaced(match: re.Match[str]) -> str:
        name = f'"{match["name"]}"'
        return match[0].replace(name, others.get(match["name"], name), 1)

    return _RELATION.sub(replaced, select)


REFERENCE_TABLES: tuple[str, ...] = (
    "rocpd_metadata", "rocpd_string", "rocpd_info_node", "rocpd_info_process", "rocpd_info_thread", "rocpd_info_agent",
    "rocpd_info_queue", "rocpd_info_stream", "rocpd_info_pmc", "rocpd_info_code_object", "rocpd_info_kernel_symbol",
    "rocpd_track",
)  # fmt: skip
"""Tables whose rows events refer to by id: far fewer rows than events."""

OPTIONAL_TABLES: tuple[str, ...] = (
    "rocpd_gpu_pc_sample", "rocpd_disassembly_data", "rocpd_pc_sampling",
    "rocpd_memory_access", "rocpd_basic_block", "rocpd_memory_page", "rocpd_memory_message",
)  # fmt: skip
"""Tables about the inside of kernels, in no released schema version: a file has such a table only if it has rows."""

TABLES: tuple[str, ...] = (
    *REFERENCE_TABLES,
    "rocpd_event", "rocpd_arg", "rocpd_pmc_event", "rocpd_region", "rocpd_sample",
    "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_memory_allocate", "rocpd_graph_launch",
    *OPTIONAL_TABLES,
)  # fmt: skip
"""All tables, in an order that satisfies foreign keys."""

RPDS: tuple[str, ...] = (
    "rocpd_api", "rocpd_kernelop", "rocpd_copyop", "rocpd_copyapi", "rocpd_op", "rocpd_api_ops", "rocpd_stackframe",
    "api", "op", "kernel", "rocpd_kernelapi", "copy", "copyop", "ktop", "call_times",
    "callstack_inclusive", "callstack_exclusive", "callstack_inclusive_name", "callstack_exclusive_name",
    "graphlaunch", "graphkernel", "autograd_launches", "autogradkernel",
)  # fmt: skip
"""Views with the names of RPD traces, for statements that were written for them."""

VIEWS: tuple[str, ...] = (
    "nodes", "processes", "threads", "agents", "rocpd_info_agents", "queues", "streams",
    "code_objects", "kernel_symbols", "pmc_info",
    "kernels", "regions", "samples", "sample_regions", "regions_and_samples", "markers",
    "memory_copies", "memory_allocations", "scratch_memory", "graph_launches",
    "events_args", "region_args", "stream_args", "pmc_events", "counters_collection",
    "top_kernels", "top", "busy",
    "kernel_summary", "kernel_summary_region", "memory_copy_summary", "memory_allocation_summary",
    "pc_samples_by_offset", "pc_samples_by_text", "pc_samples",
    "memory_accesses", "basic_blocks", "memory_pages", "memory_messages",
    *RPDS,
)  # fmt: skip
"""All readable views; a view comes after those it reads."""

UNITS = frozenset({"ns", "us", "bytes", "%", "GiB/s", "MHz"})
"""Units that `[…]` in the comment of a column may name: a word means the same in all tables and views."""

RANK_HOST_OF_V = "{{rank_host_of_V}}"
"""Placeholder for `rank` and `hostname` in a view of rows over another view with the alias V."""

_TABLE_COLUMN = re.compile(r'^    "(?P<name>\w+)" (?P<declaration>.*?),? +-- (?P<comment>.*)$')
_VIEW_COLUMN = re.compile(r'^    (?P<expression>.+) AS "(?P<name>\w+)",? +-- (?P<comment>.*)$')
_VIEW_TABLE = re.compile(
    r'^    (?:(?P<join>LEFT JOIN|JOIN) )?"(?P<table>rocpd_\w+)\{\{uuid\}\}" (?P<alias>\w+)(?: ON (?P<condition>.+))?$'
)
_VALID_TIMES = re.compile(r"\{\{valid_times(?:_of_(\w+))?\}\}")
_COPY_AGENT = re.compile(r"( *)\{\{copy_agent\}\}")
_RANK_OR_HOST = re.compile(r"\b(?:rank|hostname)\b")


class Kind(enum.Enum):
    """Kind of the values of a column; `{kind}` at the end of a view column's comment states it."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    JSON = "json"

    @property
    def is_text(self) -> bool:
        """Whether the values are texts, as JSON documents are."""
        return self in (Kind.TEXT, Kind.JSON)


_DECLARED = {
    **dict.fromkeys(("INTEGER", "BIGINT", "INT"), Kind.INTEGER),
    "REAL": Kind.REAL,
    "TEXT": Kind.TEXT,
    "JSONB": Kind.JSON,
}


@frozen
class TableColumn:
    """One column of a table.

    `unit` is one of `UNITS` or empty; `since` the schema version that added it or empty;
    `declaration` the SQL type with its constraints.
    """

    name: str
    doc: str
    unit: str
    since: str
    declaration: str

    @property
    def kind(self) -> Kind:
        """The kind of values of the declared type."""
        return _DECLARED[self.declaration.split()[0]]


@frozen
class BaseTable:
    """One table: its text with `{{uuid}}` and `{{guid}}` placeholders, and the facts in that text."""

    name: str
    doc: str
    since: str
    columns: tuple[TableColumn, ...]
    text: str


@frozen
class Lookup:
    """The place of a value: `column` of the row of `table` whose id equals `key`, such as `K.kernel_id`."""

    table: str
    column: str
    key: str


@frozen
class ViewColumn:
    """One column of a view.

    `unit` as for tables; `expression` uses the aliases of the view; `lookup`: the place of the value, where an id in a
    column leads to a reference table.
    """

    name: str
    doc: str
    unit: str
    kind: Kind
    expression: str
    lookup: Lookup | None = None


@frozen
class ViewTable:
    """One table in the FROM of a view of one rank.

    `columns`: the columns that the view uses; `join`: JOIN or LEFT JOIN, empty for the first table; `key`: the column
    that the id of the table equals, empty if `condition` has another form.
    """

    table: str
    alias: str
    columns: tuple[str, ...]
    join: str
    condition: str
    key: str


@frozen
class View:
    """One readable view.

    A view that is rendered once per rank consists of `columns`, `tables`, `where` and `group_by`. A view over other
    views has no `tables`; `reads` names those views, and `select` is its text.
    """

    name: str
    doc: str
    columns: tuple[ViewColumn, ...]
    select: str
    tables: tuple[ViewTable, ...]
    where: str
    group_by: str
    reads: tuple[str, ...]

    @property
    def is_rows(self) -> bool:
        """Whether the view has one row per event or thing, and ends with `rank`; else it aggregates over ranks."""
        return self.per_rank or RANK_HOST_OF_V in self.select

    @property
    def per_rank(self) -> bool:
        """Whether the view is rendered as one SELECT per rank."""
        return bool(self.tables)

    @property
    def names_rank(self) -> bool:
        """Whether a view over views names `rank` or `hostname` of those views, besides `RANK_HOST_OF_V`."""
        return bool(_RANK_OR_HOST.search(self.select.replace(RANK_HOST_OF_V, "")))

    def column(self, name: str) -> ViewColumn:
        """Return a column by its name, in upper or lower case."""
        return next(column for column in self.columns if column.name.lower() == name.lower())


@functools.cache
def table(name: str) -> BaseTable:
    """Read one table by its name without suffix, such as `rocpd_region`."""
    text = _text_of("tables", name)
    about = read_comment(head_comment(text))
    columns = []
    for match in filter(None, map(_TABLE_COLUMN.match, text.splitlines())):
        said = read_comment(match["comment"])
        columns.append(TableColumn(match["name"], said.doc, said.unit, said.since, match["declaration"]))
    return BaseTable(name, about.doc, about.since, tuple(columns), text)


@functools.cache
def view(name: str) -> View:
    """Read one view by its name."""
    text = _VALID_TIMES.sub(lambda of: valid_times_of(of[1] or ""), _text_of("views", name))
    return read_view(name, _COPY_AGENT.sub(lambda at: at[1] + COPY_AGENT.replace("\n", f"\n{at[1]}"), text))


def read_view(name: str, text: str) -> View:
    """Read the text of a view.

    Args:
        name: name of the view.
        text: a comment, and a CREATE VIEW with one commented column a line and one table a line.

    Raises:
        ViewTextError: a line has none of the forms of a view; the message gives the right form.
    """
    commented = text.partition(f'CREATE VIEW "{name}" AS\n')[2]
    select = strip_comments(commented).rstrip(";")
    parts = clauses(select) if select else {}
    if not {"SELECT", "FROM"} <= parts.keys():
        raise ViewTextError(name, f'`CREATE VIEW "{name}" AS`, `SELECT` and `FROM` are not lines of their own')
    relations = relations_named(select)
    try:
        tables = tuple(_view_tables(parts["FROM"], select)) if "{{uuid}}" in select else ()
        named = {alias: relation for relation, alias in reversed(relations)}
        columns = tuple(_view_columns(clauses(commented)["SELECT"], tables, named))
        _check_columns(select, {**named, **{each.alias: each.table for each in tables}})
    except ValueError as error:
        raise ViewTextError(name, error) from None
    where, group_by = (" ".join(map(str.strip, parts.get(clause, ()))) for clause in ("WHERE", "GROUP BY"))
    reads = tuple(dict.fromkeys(relation for relation, _ in relations if relation in (*TABLES, *VIEWS)))
    return View(name, head_comment(text), columns, select, tables, where, group_by, reads)


def _text_of(folder: str, name: str) -> str:
    return Path(__file__).with_name("sql").joinpath(folder, f"{name}.sql").read_text(encoding="utf-8")


def _view_tables(lines: Iterable[str], select: str) -> Iterable[ViewTable]:
    used = columns_used(select)
    for line in lines:
        if not (match := _VIEW_TABLE.match(line)):
            raise ValueError(f'not `LEFT JOIN "rocpd_…{{{{uuid}}}}" ALIAS ON …`, in one line: {line.strip()}')
        alias, condition = match["alias"], match["condition"] or ""
        key = re.fullmatch(rf"{alias}\.id = (\w+\.\w+)", condition)
        columns = tuple(column for owner, column in used if owner == alias)
        yield ViewTable(match["table"], alias, columns, match["join"] or "", condition, key[1] if key else "")


def _view_columns(lines: Iterable[str], tables: Sequence[ViewTable], named: Mapping[str, str]) -> Iterable[ViewColumn]:
    by_alias = {each.alias: each for each in tables}
    for line in lines:
        if line.strip() == RANK_HOST_OF_V:
            continue
        if not (match := _VIEW_COLUMN.match(line)):
            raise ValueError(f'not `EXPRESSION AS "column", -- meaning [unit] {{kind}}`, in one line: {line.strip()}')
        said = read_comment(match["comment"])
        alias, column = bare_column(match["expression"]) or ("", "")
        source = by_alias.get(alias)
        relation = source.table if source else named.get(alias, "")
        kind = Kind(said.kind) if said.kind else kinds_of(relation).get(column)
        if kind is None:
            raise ValueError(f"say {{integer}}, {{real}}, {{text}} or {{json}} after meaning and unit: {line.strip()}")
        lookup = None
        if source and source.key and source.table in REFERENCE_TABLES:
            lookup = Lookup(source.table, column, source.key)
        yield ViewColumn(match["name"], said.doc, said.unit, kind, match["expression"], lookup)


def _check_columns(select: str, named: Mapping[str, str]) -> None:
    """Refuse columns that a table or view lacks: they would be NULL, like columns missing in another version's file."""
    for alias, column in columns_used(select):
        known = kinds_of(named.get(alias, ""))
        if known and column not in known:
            raise ValueError(f"{alias}.{column}: {named[alias]} has no such column")


@functools.cache
def kinds_of(relation: str) -> Mapping[str, Kind]:
    """Return column -> kind of a table or view, with `rank` and `hostname` of a view of rows; empty if unknown."""
    if relation in TABLES:
        return {column.name: column.kind for column in table(relation).columns}
    if relation not in VIEWS:
        return {}
    chosen = view(relation)
    identity = {"rank": Kind.INTEGER, "hostname": Kind.TEXT} if chosen.is_rows else {}
    return identity | {column.name: column.kind for column in chosen.columns}
