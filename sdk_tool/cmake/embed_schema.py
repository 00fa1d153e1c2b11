"""Turns rocpd/schema/sql into a C++ source: the only DDL that the recorder has.

Usage: embed_schema.py OUTPUT. Needs nothing but the Python standard library and this checkout.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rocpd.schema.load import TABLES, VIEWS, BaseTable, TableColumn, table
from rocpd.schema.render import RankTables, select_text
from rocpd.schema.text import strip_comments

VERSION = "3.0.0"
"""What rocprofv3 of ROCm 7.1 writes, so that every reader of its files reads these."""

SUFFIX = "{{uuid}}"


def is_in(item: BaseTable | TableColumn) -> bool:
    """Whether VERSION has a table or column."""
    return not item.since or [int(n) for n in item.since.split(".")] <= [int(n) for n in VERSION.split(".")]


def table_text(name: str) -> str:
    """Return a table's CREATE statement without what later versions add."""
    newer = {column.name for column in table(name).columns if not is_in(column)}
    lines = strip_comments(table(name).text).splitlines()
    kept = [line for line in lines if not (m := re.match(r'    "(\w+)"', line)) or m[1] not in newer]
    return re.sub(r",\s*\n\);", "\n);", "\n".join(kept))


def statements() -> list[str]:
    """Return all statements: tables, plain views, readable views."""
    names = [name for name in TABLES if is_in(table(name))]
    part = RankTables(SUFFIX, {name: tuple(c.name for c in table(name).columns if is_in(c)) for name in names})
    plain = [f'CREATE VIEW "{name}" AS\nSELECT * FROM "{name}{SUFFIX}";' for name in names]
    views = [f'CREATE VIEW "{name}" AS\n{select_text(name, [part])};' for name in VIEWS]
    return [*map(table_text, names), *plain, *views]


def main(output: str) -> None:
    """Write the source."""
    rows = "\n".join(f'    R"sql({text})sql",' for text in statements())
    text = f"""// Generated from rocpd/schema/sql by cmake/embed_schema.py.
#include "schema.h"

namespace rocpd {{

const char* const kSchemaVersion = "{VERSION.split(".")[0]}";

const char* const kSchema[] = {{
{rows}
    nullptr,
}};

}}  // namespace rocpd
"""
    Path(output).write_text(text, encoding="utf-8")


main(sys.argv[1])
