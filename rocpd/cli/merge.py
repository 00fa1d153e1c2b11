"""Owns `rocpd merge`: one file out of many."""

from __future__ import annotations

from typing import Annotated

from rocpd.base.amount import amount
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli.analyses import Delivery, run_analyses
from rocpd.cli.diagnostics import report_written
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.cli.progress import progress
from rocpd.facts.rank import Options
from rocpd.summary.registry import OVERVIEW

_ENDINGS = (".db", ".db3", ".sqlite", ".sqlite3")
_NAME = "merged"


@frozen
class MergeOptions:
    """What is shown of the merged file."""

    summary: Annotated[bool, Option("Also print the summary of the merged file.")] = False
    limit: Annotated[int, Option("Rows of a summary table; 0 shows all.", heading=Heading.OUTPUT, least=0)] = 20


def merge(
    inputs: Inputs, asked: MergeOptions, selection: SelectionOptions, output: TableOptions, execution: Execution
) -> None:
    """Write all ranks into one SQLite file.

    Any SQLite tool shows it as one job. Every row of every rank is kept under its own table names; the joined views are
    stored too. The file is verified before it gets its name; inputs are never changed. Merged files can be merged
    again. With a window or filters only the events that count are copied, with their arguments and counters. A merged
    window answers as the window did: its metadata names it, and what analyses need of the trace around it (numbers of
    steps and collectives, launches, what was allocated before) is kept in tables rocpd_outside_...

    Examples:
        rocpd merge rank*.db --summary
        rocpd merge node0/ node1/ -o job.db
        rocpd merge job/ -o middle.db --start 40% --end 60% --rank 0-3
    """
    from rocpd.federate.merge import merge as write_merged

    target = output.destination(_ENDINGS, _NAME).path(_ENDINGS[0])
    with selection.connect(inputs, execution) as session:
        with progress("merge") as report:
            write_merged(session, target, output.force, report)
        ranks, files = len(session.ranks), len({rank.opening.path for rank in session.ranks})
    report_written(target, f"{amount(ranks, 'rank')} from {amount(files, 'file')}, ")
    if asked.summary:
        with SelectionOptions().connect(Inputs((str(target),)), execution) as session:
            Delivery(None, None, output, asked.limit).write(*run_analyses(session, [OVERVIEW], Options()))
