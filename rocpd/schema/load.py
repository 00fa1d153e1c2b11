"""Owns reading `sql/tables` and `sql/views`: their order, columns, documentation and units.

The `.sql` files are the only place where tables and views are written down. Never talks to a database.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

TABLES: tuple[str, ...] = (
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_info_node",
    "rocpd_info_process",
    "rocpd_info_thread",
    "rocpd_info_agent",
    "rocpd_info_queue",
    "rocpd_info_stream",
    "rocpd_info_pmc",
    "rocpd_info_code_object",
    "rocpd_info_kernel_symbol",
    "rocpd_track",
    "rocpd_event",
    "rocpd_arg",
    "rocpd_pmc_event",
    "rocpd_region",
    "rocpd_sample",
    "rocpd_kernel_dispatch",
    "rocpd_memory_copy",
    "rocpd_memory_allocate",
    "rocpd_graph_launch",
)
"""All tables, in an order that satisfies foreign keys."""

VIEWS: tuple[str, ...] = (
    "processes",
    "threads",
    "code_objects",
    "kernel_symbols",
    "pmc_info",
    "kernels",
    "regions",
    "samples",
    "sample_regions",
    "regions_and_samples",
    "markers",
    "memory_copies",
    "memory_allocations",
    "scratch_memory",
    "graph_launches",
    "events_args",
    "region_args",
    "stream_args",
    "pmc_events",
    "counters_collection",
    "top_kernels",
    "top",
    "busy",
    "kernel_summary",
    "kernel_summary_region",
    "memory_copy_summary",
    "memory_allocation_summary",
)
"""All readable views; a view comes after those it reads."""

_TABLE_COLUMN = re.compile(r'^    "(?P<name>\w+)" (?P<decl>.*?)(?P<comma>,?) +-- (?P<doc>.*)$')
_VIEW_COLUMN = re.compile(r'^    (?P<expr>.*) AS "(?P<name>\w+)",? +-- (?P<doc>.*)$')
_SINCE = re.compile(r"^since (\d+\.\d+\.\d+): ")
_UNIT = re.compile(r" \[([^\]]+)\]$")
_PLACE = re.compile(r'(?:FROM|JOIN)\s+"(rocpd_\w+)\{\{uuid\}\}"\s+(\w+)')


@dataclass(frozen=True)
class Column:
    """One column of a table or view.

    `unit` is ns, us, bytes, % … or empty; `since` the schema version that added it or empty;
    `declaration` the SQL type with its constraints (tables only).
    """

    name: str
    doc: str
    unit: str
    since: str
    declaration: str = ""


@dataclass(frozen=True)
class Table:
    """One table: its text with `{{uuid}}` and `{{guid}}` placeholders, and what the text says."""

    name: str
    doc: str
    since: str
    columns: tuple[Column, ...]
    text: str


@dataclass(frozen=True)
class View:
    """One readable view.

    `places` lists (table, alias, columns used) for a view that is rendered once per rank; it is
    empty for a view that is written over other views, whose names are then in `reads`.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    text: str
    places: tuple[tuple[str, str, tuple[str, ...]], ...]
    reads: tuple[str, ...]

    @property
    def is_rows(self) -> bool:
        """Whether the view is one row per event or thing, and ends with `rank`; else it aggregates over ranks."""
        return "{{rank" in self.text

    @property
    def per_rank(self) -> bool:
        """Whether the view is one SELECT per rank."""
        return bool(self.places)


def _text_of(kind: str, name: str) -> str:
    return (files("rocpd.schema") / "sql" / kind / f"{name}.sql").read_text(encoding="utf-8")


def _column(name: str, doc: str, declaration: str = "") -> Column:
    since = _SINCE.match(doc)
    doc = _SINCE.sub("", doc)
    unit = _UNIT.search(doc)
    return Column(name, _UNIT.sub("", doc), unit.group(1) if unit else "", since.group(1) if since else "", declaration)


def _doc_of(text: str) -> str:
    return "\n".join(line[3:] for line in text.split("CREATE", 1)[0].splitlines() if line.startswith("-- "))


def strip_comments(text: str) -> str:
    """Drop the trailing `-- …` comments of a `.sql` file of ours (none holds `-- ` in a string)."""
    return "\n".join(line.rstrip() for line in re.sub(r"-- .*$", "", text, flags=re.M).splitlines() if line.strip())


@functools.cache
def table(name: str) -> Table:
    """Read one table by its name without suffix, such as `rocpd_region`."""
    text = _text_of("tables", name)
    doc = _doc_of(text)
    since = _SINCE.match(doc)
    columns = tuple(_column(m["name"], m["doc"], m["decl"]) for m in map(_TABLE_COLUMN.match, text.splitlines()) if m)
    return Table(name, _SINCE.sub("", doc), since.group(1) if since else "", columns, text)


@functools.cache
def view(name: str) -> View:
    """Read one view by its name."""
    text = _text_of("views", name)
    body = strip_comments(text)
    columns = {m["name"]: _column(m["name"], m["doc"]) for m in map(_VIEW_COLUMN.match, text.splitlines()) if m}
    places = tuple((place, alias, _columns_used(body, alias)) for place, alias in _PLACE.findall(body))
    known = (*TABLES, *VIEWS)
    reads = tuple(dict.fromkeys(n for n in re.findall(r'(?:FROM|JOIN)\s+"(\w+)"', body) if n in known))
    return View(name, _doc_of(text), tuple(columns.values()), body, places, reads)


def _columns_used(body: str, alias: str) -> tuple[str, ...]:
    found = re.findall(rf'\b{alias}\.(?:"(\w+)"|(\w+))', body)
    return tuple(dict.fromkeys(quoted or bare for quoted, bare in found))
