"""Owns `rocpd info`: what the inputs are, before anything is asked of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.emit import TableFormat, emit, target


class Part(StrEnum):
    """Sections of the description."""

    RANKS = "ranks"
    AGENTS = "agents"
    TABLES = "tables"
    ODD = "odd"


@options.selects
def info(
    paths: options.Paths = None,
    inputs: options.Input = None,
    only: Annotated[
        Part | None,
        typer.Option(
            "--only", help="One section; csv, json, md and html give the ranks unless told.", show_default=False
        ),
    ] = None,
    form: Annotated[TableFormat, typer.Option("--format", "-f", help="Form of the rows.")] = TableFormat.CONSOLE,
    selection: options.Selection = options.Selection(),
    align: options.Align = options.AlignChoice.AUTO,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Show what the inputs hold: ranks, agents, rows per table, and what looks odd.

    Ranks of one clock_domain have comparable timestamps; span_s is first start to last end in seconds.

    \b
    rocpd info job/
    rocpd info job/ --only ranks --format csv
    """
    from rocpd.federate.describe import describe

    if only is None and form is not TableFormat.CONSOLE:
        only = Part.RANKS
    with selection.connect(options.inputs(paths, inputs), align, skip_bad) as session:
        sections = describe(session)
    with target(None, force=False) as out:
        shown = [section for section in sections if only in (None, section.name)]
        for number, section in enumerate(shown):
            if only is None:
                out.write(("\n" if number else "") + section.name.upper() + "\n")
            if section.rows or only:
                emit(section.columns, iter(section.rows), out, form)
            else:
                out.write("nothing\n")
