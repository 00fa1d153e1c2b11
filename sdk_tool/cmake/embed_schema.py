"""Turns rocpd/schema/sql into a C++ source: the only DDL that the recorder has.

Usage: embed_schema.py OUTPUT. Needs nothing but the Python standard library and this checkout.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rocpd.schema.load import OPTIONAL_TABLES, TABLES, BaseTable, TableColumn, strip_comments, table
from rocpd.schema.render import RankTables, select_text, views_over

VERSION = "3.0.0"
"""What rocprofv3 of ROCm 7.1 writes, so that every reader of its files reads these."""

GRAPH_VERSION = "3.0.2"
"""The first with graphs, for processes whose rocprofiler-sdk reports them."""

SUFFIX = "{{uuid}}"


def is_in(item: BaseTable | TableColumn, version: str) -> bool:
    """Whether a version has a table or column."""
    return not item.since or [int(n) for n in item.since.split(".")] <= [int(n) for n in version.split(".")]


def table_text(name: str, version: str) -> str:
    """Return a table's CREATE statement without what later versions add."""
    newer = {column.name for column in table(name).columns if not is_in(column, version)}
    lines = strip_comments(table(name).text).splitlines()
    kept = [line for line in lines if not (m := re.match(r'    "(\w+)"', line)) or m[1] not in newer]
    return re.sub(r",\s*\n\);", "\n);", "\n".join(kept))


def statements(version: str) -> list[str]:
    """Return all statements of a version: tables, plain views, readable views."""
    names = [name for name in TABLES if name not in OPTIONAL_TABLES and is_in(table(name), version)]
    columns = {name: tuple(c.name for c in table(name).columns if is_in(c, version)) for name in names}
    part = RankTables(SUFFIX, columns)
    plain = [f'CREATE VIEW "{name}" AS\nSELECT * FROM "{name}{SUFFIX}";' for name in names]
    views = [f'CREATE VIEW "{name}" AS\n{select_text(name, [part])};' for name in views_over(names)]
    return [*(table_text(name, version) for name in names), *plain, *views]


def array(name: str, version: str) -> str:
    """Return the statements of a version as an array of C++."""
    rows = "\n".join(f'    R"sql({text})sql",' for text in statements(version))
    return f"const char* const {name}[] = {{\n{rows}\n    nullptr,\n}};"


def main(output: str) -> None:
    """Write the source."""
    text = f"""// Generated from rocpd/schema/sql by cmake/embed_schema.py.
#include "schema.h"

namespace rocpd {{

{array("kSchema", VERSION)}

{array("kGraphSchema", GRAPH_VERSION)}

}}  // namespace rocpd
"""
    Path(output).write_text(text, encoding="utf-8")


main(sys.argv[1])
