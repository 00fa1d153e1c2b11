"""Owns `rocpd summary`: where the time went, per kernel, copy, function, marker or domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocpd.cli import options
from rocpd.cli.analyses import SummaryFormat, check_names, check_options, deliver, hint_for, listing, names_first
from rocpd.cli.diagnostics import progress, tell
from rocpd.cli.emit import TableFormat, emit, target
from rocpd.errors import RocpdError, UsageError
from rocpd.summary.registry import TOTALS

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.summary.summarize import SummaryOptions
    from rocpd.summary.tables import SummaryTable
    from rocpd.trace.kernel_names import KernelNames


class ByChoice(StrEnum):
    """What a job is divided into."""

    RANK = "rank"
    HOST = "host"
    AGENT = "agent"
    STREAM = "stream"


@options.selects
def summary(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMES] INPUTS",
            show_default=False,
            help="Names of summaries (--list), then files, globs, folders, *.rpdb packages.",
        ),
    ] = None,
    inputs: options.Input = None,
    form: Annotated[SummaryFormat, typer.Option("--format", "-f", help="Form of the tables.")] = SummaryFormat.CONSOLE,
    by: Annotated[ByChoice | None, typer.Option("--by", show_default=False, help="Divide named summaries.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the names of summaries.")] = False,
    list_categories: Annotated[
        bool, typer.Option("--list-categories", help="List the domains and categories that the inputs hold.")
    ] = False,
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
    categories: Annotated[
        Path | None,
        typer.Option(
            "--categories", metavar="FILE", show_default=False, help="Kernel categories, JSON or TOML: name -> regexes."
        ),
    ] = None,
    step_marker: Annotated[
        str | None,
        typer.Option(
            "--step-marker", metavar="REGEX", show_default=False, help="Markers that are steps [default: step, iter …]."
        ),
    ] = None,
    sequence: Annotated[
        int, typer.Option("--sequence", min=0, metavar="N", help="variability: behind the same N operations.")
    ] = 0,
    name: options.OutputName = None,
    folder: options.OutputFolder = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows per table on the console; 0 shows all.")] = 20,
    selection: options.Selection = options.Selection(),
    align: options.Align = options.AlignChoice.AUTO,
    scheduler: options.Scheduler = None,
    local_hosts: options.LocalHosts = False,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    verbose: options.Verbose = False,
) -> None:
    """Show where the time went, exact over all ranks.

    Without names: the tables that AMD's users know. Durations are nanoseconds, percentages are of the table (by rank:
    of the rank), STD_DEV is the sample deviation. On the console and without -o or -d they go to stdout; else one file
    each, <NAME>_<table>.<format>.

    With names: those summaries, in units for people on the console and exact in files; `all` gives every one.

    \b
    rocpd summary
    rocpd summary job/*.db --summary-by-rank --format csv -d summaries
    rocpd summary -i a.db b.db --region-categories HIP MARKERS --domain-summary
    rocpd summary kernels gaps --by rank job/
    rocpd summary ranks job/ --auto-roi
    """
    if listed:
        _write(("name", "more tables", "what"), listing(), limit=0)
        return
    if mangled and truncate:
        raise UsageError("--mangled-kernels and --truncate-kernels contradict each other")
    from rocpd.summary.options import STEP_MARKER, By, Options
    from rocpd.summary.run import others
    from rocpd.trace.kernel_names import KernelNames

    named, rest = names_first(options.inputs(paths, inputs), others())
    check_names(rest, others())
    if (named or by) and (by_rank or domains or regions):
        raise UsageError(
            "--summary-by-rank, --domain-summary and --region-categories are for summaries without names",
            "with names: --by rank, `domains`, --category",
        )
    given = {"sequence": sequence, "categories": categories, "step_marker": step_marker}
    if not list_categories:
        check_options(named or TOTALS, [option for option, value in given.items() if value])
    kernel_names = KernelNames.MANGLED if mangled else KernelNames.TRUNCATED if truncate else KernelNames.DISPLAY
    kind = By(by.value) if by else None
    asked = Options(kind, kernel_names, categories, step_marker or STEP_MARKER, sequence)
    with selection.connect(rest, align, skip_bad, options.cluster(scheduler, local_hosts)) as session:
        if list_categories:
            _list_categories(session)
        elif named or by:
            prefix = _prefix(name, folder, always=form is SummaryFormat.PARQUET)
            deliver(session, named or TOTALS, asked, form, (prefix, force, limit))
        else:
            _dropin(session, (by_rank, domains, regions, kernel_names), form, (name, folder, force, limit))


def _write(columns: Sequence[str], rows: Iterable[tuple[Any, ...]], limit: int) -> None:
    with target(None, force=False) as out:
        emit(columns, iter(rows), out, TableFormat.CONSOLE, limit)


def _list_categories(session: Session) -> None:
    from rocpd.federate.select.filters import event_categories

    _write(("domain", "category", "events"), event_categories(session.map_ranks), limit=0)


def _prefix(name: str | None, folder: Path | None, *, always: bool) -> str | None:
    """Give what names of files begin with; None when nothing asks for files."""
    if name is None and folder is None and not always:
        return None
    return str(options.output_folder(folder) / options.output_name(name))


def _dropin(
    session: Session,
    asked: tuple[bool, bool, list[str] | None, KernelNames],
    form: SummaryFormat,
    place: tuple[str | None, Path | None, bool, int],
) -> None:
    """Give AMD's tables: to stdout on the console, else one file each."""
    from rocpd.output import check_free
    from rocpd.summary.summarize import SummaryOptions

    if form.value not in set(TableFormat):
        raise UsageError(f"--format {form} is for named summaries", hint_for(form))
    by_rank, domains, regions, kernel_names = asked
    name, folder, force, limit = place
    tables = summarized(session, SummaryOptions(by_rank, domains, _categories(regions), kernel_names))
    chosen = TableFormat(form.value)
    prefix = _prefix(name, folder, always=chosen is not TableFormat.CONSOLE)
    if prefix is None:
        show(tables, limit)
        return
    ending = "txt" if chosen is TableFormat.CONSOLE else chosen.value
    files = [(Path(f"{prefix}_{table.name}.{ending}"), table) for table in tables]
    for path, _ in files:
        check_free(path, force)
    for path, table in files:
        with target(path, force) as out:
            emit(table.columns, iter(table.rows), out, chosen)


def summarized(session: Session, wanted: SummaryOptions) -> list[SummaryTable]:
    """Give all tables, with a progress bar; an empty job is an error, not a page of zeros."""
    from rocpd.summary.summarize import summarize

    with progress("summary", "ranks") as report:
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
