"""Owns `rocpd schema`: what tables and views there are, and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.emit import TableFormat, emit, target
from rocpd.errors import UsageError


def schema(
    name: Annotated[str | None, typer.Argument(metavar="[TABLE|VIEW]", show_default=False, help="One of them.")] = None,
    form: Annotated[TableFormat, typer.Option("--format", "-f", help="Form of the rows.")] = TableFormat.CONSOLE,
    verbose: options.Verbose = False,
) -> None:
    """Show the tables and views that SQL can name, or the columns of one with their units.

    \b
    rocpd schema
    rocpd schema kernels
    """
    with target(None, force=False) as out:
        if name is None:
            emit(("name", "kind", "about"), _relations(), out, form)
        else:
            emit(("column", "unit", "meaning"), iter(_columns(name)), out, form)


def _relations() -> Iterator[tuple[str, str, str]]:
    from rocpd.schema.load import TABLES, VIEWS, table, view

    for name in VIEWS:
        yield name, "view", view(name).doc.splitlines()[0]
    for name in TABLES:
        yield name, "table", table(name).doc.splitlines()[0]


def _columns(name: str) -> list[tuple[str, str, str]]:
    from rocpd.schema.load import TABLES, VIEWS, table, view

    wanted = name.lower()
    if wanted in VIEWS:
        return [(column.name, column.unit, column.doc) for column in view(wanted).columns]
    base = wanted if wanted in TABLES else f"rocpd_{wanted}"
    if base not in TABLES:
        raise UsageError(f"{name}: no table or view of that name", "`rocpd schema` lists them")
    columns = table(base).columns
    return [(c.name, c.unit, c.doc + (f" (since {c.since})" if c.since else "")) for c in columns]
