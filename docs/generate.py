"""Writes the reference pages from the code: `python -m docs.generate`, or `--check` to compare only."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

from docs.advice_page import advice_page
from docs.analysis_pages import analysis_pages
from docs.api_page import api_page
from docs.compare_page import compare_page, history_page
from docs.screens import screens
from rocpd.agents.pages import PAGES as PACKAGED
from rocpd.agents.pages import page as packaged
from rocpd.schema.calculated import CalculatedTable
from rocpd.schema.versions import VERSIONS

ROOT = Path(__file__).resolve().parent.parent


def cli_page() -> str:
    """Return docs/cli.md: the help of every command, as `--help-all` shows it at 100 columns."""
    from rocpd.cli.commands import COMMANDS

    parts = ["# Command line\n\nGenerated, with all options. `rocpd COMMAND --help` shows those needed most.\n\n"]
    parts.append(_help("--help"))
    for name in COMMANDS:
        parts.append(f"\n## rocpd {name}\n\n{_help(name, '--help-all')}")
    return "".join(parts)


def _help(*words: str) -> str:
    from rocpd.cli import run

    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        run(words)
    return f"```text\n{shown.getvalue().rstrip()}\n```\n"


def tables_page() -> str:
    """Return schema/tables.md: every table with its columns, types, units and the version that added them."""
    from rocpd.schema.load import TABLES, table

    parts = [
        "# Tables\n\nGenerated from `rocpd/schema/sql/tables`. Real names end in the UUID suffix of their file;"
        " ids are local to a GUID. The DDL of each version: "
        + ", ".join(f"[{version}](ddl/{version}.sql)" for version in VERSIONS)
        + ".\n\n![Which table refers to which](relations.svg)\n"
    ]
    for name in TABLES:
        described = table(name)
        since = f" *(since {described.since})*" if described.since else ""
        parts.append(
            f"\n## {name}\n\n{described.doc}{since}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n"
        )
        for column in described.columns:
            since = f" *(since {column.since})*" if column.since else ""
            declared = column.declaration.replace("{{guid}}", "GUID").replace("|", "\\|")
            parts.append(f"| {column.name} | `{declared}` | {column.unit} | {column.doc}{since} |\n")
    return "".join(parts)


def views_page() -> str:
    """Return schema/views.md: every readable view with its columns, the kinds of their values and their units."""
    from rocpd.schema.load import VIEWS, view

    parts = [
        "# Views\n\nGenerated from `rocpd/schema/sql/views`. Views of rows end with `rank` and, where they have none,\n"
        "`hostname`. A kind is `integer`, `real`, `text` or `json` (a JSON document as text): it decides the type in\n"
        "Parquet and Arrow. Any value may be NULL. [Calculated tables](calculated.md) are what SQL can name besides.\n"
    ]
    for name in VIEWS:
        chosen = view(name)
        parts.append(f"\n## {name}\n\n{chosen.doc}\n\n| column | kind | unit | meaning |\n|---|---|---|---|\n")
        parts += [f"| {c.name} | {c.kind.value} | {c.unit} | {c.doc} |\n" for c in chosen.columns]
    return "".join(parts)


def secret_shapes() -> str:
    """Return the header by which the recorder knows secrets, of the same rules as `rocpd redact`."""
    from rocpd.redact.secrets import rules

    known = rules()
    texts = {
        "kInNames": known.in_names,
        "kParts": sorted(known.parts),
        "kEndings": known.endings,
        "kLoginOptions": known.login_options,
        "kSettings": known.settings,
        "kShortSettings": known.short_settings,
        "kHosts": known.go_hosts,
    }
    parts = ["// Generated from rocpd/redact/data/secrets.toml, which says what each is. Never edited by hand.\n"]
    parts.append("#pragma once\n\n#include <array>\n#include <cstddef>\n#include <string_view>\n\nnamespace rocpd {\n")
    for name, values in texts.items():
        parts.append(f"\nconstexpr std::array<std::string_view, {len(values)}> {name} = {{\n")
        parts += [f'    "{value}",\n' for value in values]
        parts.append("};\n")
    parts.append(f"\nconstexpr std::size_t kLongestLogin = {known.longest_login};\n")
    parts.append(f'\nconstexpr std::string_view kPrivateKey = "{known.private_key}";\n')
    parts.append("\nstruct Shape {\n    std::string_view start;\n    std::size_t least;\n};\n")
    parts.append(f"constexpr std::array<Shape, {len(known.tokens)}> kShapes = {{{{\n")
    parts += [f'    {{"{start}", {least}}},\n' for start, least in known.tokens.items()]
    parts.append("}};\n\n}  // namespace rocpd\n")
    return "".join(parts)


_CALCULATED = """# Calculated tables

Generated from `rocpd/summary`. No file has these tables: they are calculated when a statement reads them, over the
ranks, window and filters that count. They answer like views, and join each other, views and tables:
`select * from summary.budget where part = 'idle'`.

- Every table that `rocpd summary` prints is in the schema `summary`, with `_` for `-` and full names of kernels. Its
  name alone will do where no view has it. `rocpd schema summary.budget` explains columns.
- The first argument divides, as `--by` does: `budget('step')`, or `where divided_by = 'step'`. The columns of all
  divisions follow those of the table; they are NULL without their division. Columns whose names depend on what divides
  (`min_hostname` of `imbalance`) or on what was counted (`counters-wide`) are left out.
- Options are further arguments, by place or by name: `where step_marker = 'iteration [0-9]+'`; of yes and no 1 and 0.
- What the job has no data for is empty, and a note says why.
- Merged files do not store them.

## Tables of analyses

| table | alone | divided by | further arguments | about |
|---|---|---|---|---|
"""


def calculated_page() -> str:
    """Return schema/calculated.md: those of analyses in a line, whose columns have pages; columns of the others."""
    from rocpd.summary.registry import TABLES
    from rocpd.summary.relations import RELATIONS

    pages = {f"summary.{table.replace('-', '_')}": f"../docs/analyses/{name}.md" for table, name in TABLES.items()}
    tables = {name: load().table for name, load in RELATIONS.items()}
    parts = [_CALCULATED, *(_in_a_line(name, page, tables[name]) for name, page in pages.items())]
    for name in (name for name in tables if name not in pages):
        table = tables[name]
        parts.append(f"\n## {name}\n\n{table.doc}\n\n| column | unit | meaning |\n|---|---|---|\n")
        parts += [f"| {column.name} | {column.unit} | {column.doc} |\n" for column in table.columns]
        parts += [f"| *{argument.name}* | argument | {argument.meaning} |\n" for argument in table.arguments]
    return "".join(parts)


def _in_a_line(name: str, page: str, table: CalculatedTable) -> str:
    from rocpd.summary.relations import BARE

    ways = {argument.name: argument.values[1:] for argument in table.arguments}
    divided_by = ", ".join(ways.pop("divided_by", ()))
    cells = (
        f"[{name}]({page})",
        f"`{table.name}`" if table.name in BARE else "",
        divided_by,
        ", ".join(f"`{argument}`" for argument in ways),
        table.doc.splitlines()[0],
    )
    return f"| {' | '.join(cells)} |\n"


def ddl_page(version: str) -> str:
    """Return the DDL of one schema version, as the writer makes it, with UUID and GUID in place of real ones."""
    from rocpd.schema.write import create_table_text, tables_of

    head = f"-- The tables of schema {version}, generated from rocpd/schema/sql/tables.\n"
    return head + "".join(f"{create_table_text(name, '_UUID', 'GUID', version)}\n" for name in tables_of(version))


def relations_picture() -> str:
    """Return schema/relations.svg: which table refers to which."""
    from docs.picture import relations_svg

    return relations_svg()


PAGES: dict[str, Callable[[], str]] = {
    "docs/advise.md": advice_page,
    "docs/api.md": api_page,
    "docs/cli.md": cli_page,
    "docs/compare.md": compare_page,
    "docs/history.md": history_page,
    **{f"docs/{name}.md": functools.partial(packaged, name) for name in PACKAGED},
    **analysis_pages(),
    **screens(),
    "schema/tables.md": tables_page,
    "schema/views.md": views_page,
    "schema/calculated.md": calculated_page,
    "schema/relations.svg": relations_picture,
    "sdk_tool/src/secret_shapes.h": secret_shapes,
    **{f"schema/ddl/{version}.sql": functools.partial(ddl_page, version) for version in VERSIONS},
}


def main(arguments: list[str]) -> int:
    """Write all pages, or name those that differ."""
    stale = []
    for name, page in PAGES.items():
        path, text = ROOT / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    verb = "differ from the code, run `make docs`:" if "--check" in arguments else "written:"
    print(f"{verb} {', '.join(stale)}" if stale else "reference pages are up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
