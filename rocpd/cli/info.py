"""Owns `rocpd info`: what the inputs are, before anything is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import tell
from rocpd.cli.emit import TableFormat, emit, target

if TYPE_CHECKING:
    from rocpd.federate.session import Session


def info(
    paths: options.Paths = None,
    inputs: options.Input = None,
    views: Annotated[bool, typer.Option("--views", help="List the tables and views that SQL can name.")] = False,
    form: Annotated[TableFormat, typer.Option("--format", "-f", help="Form of the rows.")] = TableFormat.CONSOLE,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Show which ranks the inputs hold.

    One line per rank: file, host, pid, command, schema version, clock domain, and its time span in seconds.

    \b
    rocpd info job/
    rocpd info --views
    """
    from rocpd.federate.session import connect

    with target(None, force=False) as out:
        if views:
            emit(("name", "kind", "about"), _relations(), out, form)
            return
        with connect(options.inputs(paths, inputs), skip_bad=skip_bad, tell=tell) as session:
            columns = ("rank", "file", "host", "pid", "command", "schema", "clock_domain", "span_s")
            emit(columns, _ranks(session), out, form)


def _ranks(session: Session) -> Iterator[tuple[Any, ...]]:
    domain = {rank: index for index, found in enumerate(session.clock_domains) for rank in found.ranks}
    for rank in session.ranks:
        span = session.spans.get(rank.number)
        seconds = (span.end - span.start) / 1e9 if span else None
        yield (
            rank.number, str(rank.opening.path), rank.hostname, rank.pid, rank.command, rank.version,
            domain.get(rank.number), seconds,
        )  # fmt: skip


def _relations() -> Iterator[tuple[str, str, str]]:
    from rocpd.schema.load import TABLES, VIEWS, table, view

    for name in VIEWS:
        yield name, "view", view(name).doc.splitlines()[0]
    for name in TABLES:
        yield name, "table", table(name).doc.splitlines()[0]
