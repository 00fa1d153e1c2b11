"""Owns `rocpd merge`: one file out of many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, wrote
from rocpd.cli.summary import show, summarized

_ENDINGS = (".db", ".db3", ".sqlite", ".sqlite3")


@options.selects
def merge(
    paths: options.Paths = None,
    inputs: options.Input = None,
    name: Annotated[
        str, typer.Option("--output-file", "-o", metavar="NAME", help="File to write; .db is added.")
    ] = "merged",
    folder: options.OutputFolder = None,
    summary: Annotated[bool, typer.Option("--summary", help="Also print the summary of the merged file.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows per summary table; 0 shows all.")] = 20,
    selection: options.Selection = options.Selection(),
    align: options.Align = options.AlignChoice.AUTO,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Put all ranks into one SQLite file that any SQLite tool shows as one job.

    Every row of every rank is kept under its own table names; the joined views are stored too. The file is verified
    before it gets its name; inputs are never changed. Merged files can be merged again. With a window or filters only
    the events that count are copied, with their arguments and counters.

    \b
    rocpd merge rank*.db --summary
    rocpd merge node0/ node1/ -o job -d results
    rocpd merge job/ -o step7 --start-marker "step 7" --end-marker "step 7" --rank 0-3
    """
    from rocpd.federate.merge import merge as write_merged
    from rocpd.session import connect
    from rocpd.summary.summarize import SummaryOptions

    target = output_path(name, folder)
    with selection.connect(options.inputs(paths, inputs), align, skip_bad) as session:
        with progress("merge") as report:
            write_merged(session, target, force, report)
        ranks, files = len(session.ranks), len({rank.opening.path for rank in session.ranks})
    wrote(target, f"{_count(ranks, 'rank')} from {_count(files, 'file')}, ")
    if summary:
        with connect([target]) as session:
            show(summarized(session, SummaryOptions()), limit)


def output_path(name: str, folder: Path | None) -> Path:
    """Give the file to write: a name with a folder of its own (`./` too) stays where it says."""
    path = Path(name) if folder is None and "/" in name else options.output_folder(folder) / name
    return path if path.suffix.lower() in _ENDINGS else path.with_name(path.name + ".db")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
