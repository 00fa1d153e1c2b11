"""Owns `rocpd summary`: where the time went, per kernel, copy, function, marker or domain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocpd.cli import options
from rocpd.cli.diagnostics import progress, tell
from rocpd.cli.emit import TableFormat, emit, target
from rocpd.errors import RocpdError, UsageError

if TYPE_CHECKING:
    from rocpd.federate.session import Session
    from rocpd.summary.summarize import SummaryOptions
    from rocpd.summary.tables import SummaryTable


def summary(
    paths: options.Paths = None,
    inputs: options.Input = None,
    form: Annotated[TableFormat, typer.Option("--format", "-f", help="Form of the tables.")] = TableFormat.CONSOLE,
    by_rank: Annotated[bool, typer.Option("--summary-by-rank", help="Also each table by rank.")] = False,
    domains: Annotated[bool, typer.Option("--domain-summary", help="Also the time by domain.")] = False,
    regions: Annotated[
        list[str] | None,
        typer.Option(
            "--region-categories",
            metavar="NAME...",
            help="API domains to show: HIP MARKERS …, or NONE.",
            show_default=False,
        ),
    ] = None,
    mangled: Annotated[bool, typer.Option("--mangled-kernels", help="Mangled kernel names.")] = False,
    truncate: Annotated[
        bool, typer.Option("--truncate-kernels", help="Kernel names without signature and template.")
    ] = False,
    name: options.OutputName = None,
    folder: options.OutputFolder = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows per table on the console; 0 shows all.")] = 20,
    start: options.Start = None,
    end: options.End = None,
    start_marker: options.StartMarker = None,
    end_marker: options.EndMarker = None,
    inclusive: options.Inclusive = "True",
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Show where the time went, exact over all ranks.

    Durations are nanoseconds, percentages are of the table (by rank: of the rank), STD_DEV is the sample deviation.
    On the console and without -o or -d the tables go to stdout; else one file each, <NAME>_<table>.<format>.

    \b
    rocpd summary
    rocpd summary job/*.db --summary-by-rank --format csv -d summaries
    rocpd summary -i a.db b.db --region-categories HIP MARKERS --domain-summary
    """
    from rocpd.federate.session import connect
    from rocpd.output import check_free
    from rocpd.summary.summarize import SummaryOptions
    from rocpd.summary.survey import KernelNames

    if mangled and truncate:
        raise UsageError("--mangled-kernels and --truncate-kernels contradict each other")
    names = KernelNames.MANGLED if mangled else KernelNames.TRUNCATED if truncate else KernelNames.DISPLAY
    wanted = SummaryOptions(by_rank, domains, _categories(regions), names)
    window = options.window(start, end, start_marker, end_marker, inclusive)
    with connect(options.inputs(paths, inputs), skip_bad=skip_bad, window=window, tell=tell) as session:
        tables = summarized(session, wanted)
    if form is TableFormat.CONSOLE and name is None and folder is None:
        show(tables, limit)
        return
    ending = "txt" if form is TableFormat.CONSOLE else form.value
    prefix = str(options.output_folder(folder) / options.output_name(name))
    files = [(Path(f"{prefix}_{table.name}.{ending}"), table) for table in tables]
    for path, _ in files:
        check_free(path, force)
    for path, table in files:
        with target(path, force) as out:
            emit(table.columns, iter(table.rows), out, form)


def summarized(session: Session, wanted: SummaryOptions) -> list[SummaryTable]:
    """Give all tables, with a progress bar; an empty job is an error, not a page of zeros."""
    from rocpd.summary.summarize import summarize

    with progress("summary", "steps") as report:
        tables = list(summarize(session, wanted, report))
    if not tables:
        raise RocpdError("nothing to summarise: no kernels, copies, allocations or regions in the inputs")
    return tables


def show(tables: list[SummaryTable], limit: int) -> None:
    """Write all tables to stdout, each under its name."""
    cut = 0
    with target(None, force=False) as out:
        for number, table in enumerate(tables):
            out.write(("\n" if number else "") + table.name.replace("_", " ").upper() + "\n")
            cut += emit(table.columns, iter(table.rows), out, TableFormat.CONSOLE, limit)
    if cut:
        tell(f"{cut} of {len(tables)} tables cut at {limit} rows; --limit 0 shows all")


def _categories(given: list[str] | None) -> list[str] | None:
    if not given:
        return None
    names = [{"MARKER": "MARKERS"}.get(name.upper(), name.upper()) for name in given]
    return [name for name in names if name != "NONE"]
