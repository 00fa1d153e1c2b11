"""Owns `rocpd info`: what the inputs are, before anything is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from rocpd.cli import tables
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.cli.terminal import screen_of
from rocpd.frozen import frozen
from rocpd.option import Option
from rocpd.types import Row

if TYPE_CHECKING:
    from rocpd.session import Session


class InfoSection(StrEnum):
    """Sections of the description."""

    JOB = "job"
    RANKS = "ranks"
    AGENTS = "agents"
    TABLES = "tables"
    CLOCKS = "clocks"
    PROBLEMS = "problems"

    @classmethod
    def _missing_(cls, value: object) -> InfoSection | None:
        return cls.PROBLEMS if value == "odd" else None  # what the section was called


_SHARED = ("ranks", "which", "what")


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
    """Show what the job is: GPUs, versions, ranks, rows, problems.

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
        screen = screen_of(out)
        for number, (name, section) in enumerate(describe(session, only).items()):
            if only is None:
                heading = screen.bold(name.upper()) if screen else name.upper()
                out.write(("\n" if number else "") + heading + "\n")
            if form or section.first(1):
                columns, rows = section.columns, iter(section)
                if name == InfoSection.PROBLEMS and not form:
                    columns, rows = _SHARED, _shared(session)
                tables.write_rows(columns, rows, out, form)
            else:
                out.write("no problems\n" if name == InfoSection.PROBLEMS else "none\n")


def _shared(session: Session) -> Iterator[Row]:
    """Yield problems as people read them: those of several ranks once."""
    from rocpd.federate.problems import problems_of, shared
    from rocpd.trace.collectives import listed

    for problem in shared(problems_of(session)):
        yield len(problem.ranks), listed(sorted(set(problem.ranks))), problem.text
