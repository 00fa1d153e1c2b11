"""Owns `rocpd info`: what the inputs are, before anything is asked of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from rocpd.cli import tables
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.frozen import frozen
from rocpd.option import Option


class InfoSection(StrEnum):
    """Sections of the description."""

    RANKS = "ranks"
    AGENTS = "agents"
    TABLES = "tables"
    CLOCKS = "clocks"
    PROBLEMS = "problems"

    @classmethod
    def _missing_(cls, value: object) -> InfoSection | None:
        return cls.PROBLEMS if value == "odd" else None  # what the section was called


@frozen
class InfoOptions:
    """Which section, and how it looks."""

    only: Annotated[
        InfoSection | None, Option("One section; formats other than console have the ranks, if none is named.")
    ] = None
    format: Annotated[str, tables.FORMAT] = ""


def info(
    inputs: Inputs, asked: InfoOptions, selection: SelectionOptions, output: TableOptions, execution: Execution
) -> None:
    """Show ranks, agents, rows per table, and problems.

    Ranks of one clock_domain have comparable timestamps; span_s is first start to last end in seconds. offset_ns is
    added to the times of a host on the time line of all, right to certain_ns and probably to likely_ns.

    Examples:
        rocpd info job/
        rocpd info job/ --only ranks --format csv
        rocpd info job/ --only clocks
    """
    from rocpd.federate.describe import describe

    form, path = tables.format_and_path(asked.format, output)
    only = asked.only or (InfoSection.RANKS if form else None)
    with (
        selection.connect(inputs, execution) as session,
        tables.open_output(path, output) as out,
    ):
        for number, (name, section) in enumerate(describe(session, only).items()):
            if only is None:
                out.write(("\n" if number else "") + name.upper() + "\n")
            if form or section.first(1):
                tables.write_rows(section.columns, iter(section), out, form)
            else:
                out.write("none\n")
