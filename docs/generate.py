"""Writes the reference pages from the code: `python -m docs.generate`, or `--check` to compare only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cli_page() -> str:
    """Give docs/cli.md: the help of every command, as the terminal shows it at 100 columns."""
    from rocpd.cli import COMMANDS

    parts = ["# Command line\n\nThis page is generated from the commands.\n"]
    parts.append(_help())
    for command in COMMANDS:
        parts.append(f"\n## rocpd {command.__name__}\n\n{_help(command.__name__)}")
    return "".join(parts)


def _help(*command: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    shown = subprocess.run(
        [sys.executable, "-m", "rocpd", *command, "--help"], env=environment, capture_output=True, text=True, check=True
    )
    return f"```text\n{shown.stdout.rstrip()}\n```\n"


def tables_page() -> str:
    """Give schema/tables.md: every table with its columns, types, units and the version that added them."""
    from rocpd.schema.load import TABLES, table

    parts = [
        "# Tables\n\nGenerated from `rocpd/schema/sql/tables`. Real names end in the UUID suffix of their file;"
        " ids are local to a GUID.\n"
    ]
    for name in TABLES:
        found = table(name)
        since = f" *(since {found.since})*" if found.since else ""
        parts.append(f"\n## {name}\n\n{found.doc}{since}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n")
        for column in found.columns:
            since = f" *(since {column.since})*" if column.since else ""
            declared = column.declaration.replace("{{guid}}", "GUID").replace("|", "\\|")
            parts.append(f"| {column.name} | `{declared}` | {column.unit} | {column.doc}{since} |\n")
    return "".join(parts)


def views_page() -> str:
    """Give schema/views.md: every readable view with its columns and units."""
    from rocpd.schema.load import VIEWS, view

    parts = [
        "# Views\n\nGenerated from `rocpd/schema/sql/views`. Views of rows end with `rank` and, where they have none,"
        " `hostname`.\n"
    ]
    for name in VIEWS:
        found = view(name)
        parts.append(f"\n## {name}\n\n{found.doc}\n\n| column | unit | meaning |\n|---|---|---|\n")
        parts += [f"| {column.name} | {column.unit} | {column.doc} |\n" for column in found.columns]
    return "".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
    "schema/tables.md": tables_page,
    "schema/views.md": views_page,
}


def main(arguments: list[str]) -> int:
    """Write all pages, or name those that differ."""
    stale = []
    for name, page in PAGES.items():
        path, text = ROOT / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    verb = "differ from the code, run `make docs`:" if "--check" in arguments else "written:"
    print(f"{verb} {', '.join(stale)}" if stale else "reference pages are up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
