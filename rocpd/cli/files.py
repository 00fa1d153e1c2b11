"""The commands that write files of a job: import, merge, trim, package, redact and symbolize; index and cache."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import InputError, RocpdError, UsageError, amount, frozen
from rocpd.base.option import REQUIRED, Heading, declare, plain
from rocpd.cli import tables
from rocpd.cli.diagnostics import note, progress, report_written
from rocpd.cli.options import Execution, Inputs, JobChoice, OutputOptions, SelectionOptions, TableOptions, whole
from rocpd.federate.plan.steps import IndexUse
from rocpd.redact.options import RedactOptions
from rocpd.summary.registry import OVERVIEW

if TYPE_CHECKING:
    from rocpd.session import Session


@frozen
class ImportOptions:
    """The folder of the files, and the number of processes."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Path = plain(Path("imported"), "New folder for the rocpd files.", "DIR", ("-d", "--output-path"))
    force: bool = plain(False, "Replace a folder that an earlier run wrote.")
    join: tuple[str, ...] = plain(
        (),
        "PyTorch's trace of a process that rocprofv3 recorded, too: its operators are added to a copy; repeatable.",
        "TRACE",
    )
    jobs: int | None = declare(
        None, "Files read at a time; without it one per core.", "N", ("-j", "--jobs"), Heading.EXECUTION, least=1
    )


def import_(inputs: Inputs, asked: ImportOptions) -> None:
    """Write traces of other profilers as rocpd files.

    Each process becomes one rocpd file. The format of an input is recognised by its content, not by its name; .gz is
    read, too. Data without a place in a rocpd file is counted and reported. Every other command reads such inputs as
    well: it imports them once, into a cache (rocpd cache).

    Examples:
        rocpd import trace.rpd -d job
        rocpd import old-traces/ -d job
        rocpd import rank0.db --join trace.json.gz -d joined
    """
    from rocpd.importers.run import import_traces

    if not inputs.paths:
        raise UsageError("nothing to import", "rocpd import FILE... -d DIR")
    if asked.join:
        _join(inputs, asked)
        return
    with progress("import", "bytes") as report:
        files = import_traces(
            inputs.paths,
            asked.folder,
            force=asked.force,
            skip_bad=inputs.skip_bad,
            jobs=asked.jobs,
            on_note=note,
            on_progress=report,
        )
    report_written(asked.folder, f"{amount(len(files), 'rank')}, ")


def _join(inputs: Inputs, asked: ImportOptions) -> None:
    """Write copies of files with the operators of traces."""
    from rocpd.importers.join import join
    from rocpd.session import connect

    with (
        connect(inputs.paths, skip_bad=inputs.skip_bad, on_note=note) as recorded,
        connect(asked.join, on_note=note) as traced,
        progress("join") as report,
    ):
        joined = join(recorded, traced, asked.folder, asked.force, report)
    for each in joined:
        note(str(each))
    report_written(asked.folder, f"{amount(len(joined), 'rank')}, ")


_ENDINGS = (".db", ".db3", ".sqlite", ".sqlite3")


@frozen
class MergeOptions:
    """The summary of the merged file."""

    summary: bool = plain(False, "Also print the summary of the merged file.")
    limit: int = declare(20, "Rows of a summary table; 0 shows all.", heading=Heading.OUTPUT, least=0)


def merge(job: JobChoice, asked: MergeOptions, output: TableOptions) -> None:
    """Write all ranks into one SQLite file.

    Any SQLite tool shows it as one job. Every row of every rank is kept under its own table names; the joined views are
    stored too. The file is verified before it gets its name; inputs are never changed. Merged files can be merged
    again. With a window or filters only the events that count are copied, with their arguments and counters. A merged
    window answers as the window did: its metadata names it, and tables rocpd_outside_... keep the facts of the trace
    around it that analyses need (numbers of steps and collectives, launches, earlier allocations).

    Examples:
        rocpd merge job/ -o job.db
        rocpd merge rank*.db --summary
        rocpd merge job/ -o middle.db --start 40% --end 60% --rank 0-3
    """
    from rocpd.federate.merge import merge as write_merged

    target = output.destination(_ENDINGS, "merged").path(_ENDINGS[0])
    with job.connect() as session:
        with progress("merge") as report:
            write_merged(session, target, output.force, report)
        ranks, files = len(session.ranks), len({rank.opening.path for rank in session.ranks})
    report_written(target, f"{amount(ranks, 'rank')} from {amount(files, 'file')}, ")
    if asked.summary:
        from rocpd.facts.rank import Options

        with whole(Inputs((str(target),)), job).connect() as session:
            shown = tables.run_analyses(session, [OVERVIEW], Options())
            tables.Delivery(None, None, output, asked.limit).write(*shown)


_RPD = ".rpd"


def trim(job: JobChoice, output: OutputOptions) -> None:
    """Write the part of a job that lies in a window.

    Events that overlap the window stay as a whole, with the calls that launched them. A single RPD file becomes an RPD
    file, for tools that read this format, without references to removed rows; other inputs, and outputs that end in
    .db, become one SQLite file, as with rocpd merge. Inputs are never changed.

    Examples:
        rocpd trim trace.rpd -o part.rpd --start 40% --end 60%
        rocpd trim trace.rpd -o part.db --start-marker "step 3" --end-marker "step 5"
        rocpd trim job/ -o part.db --step 3
    """
    if job.window() is None:
        raise UsageError("trim needs a window", "--start, --end, --step, a marker, --window-kernel, --auto-roi")
    with job.connect() as session:
        trace = _rpd_file(job)
        target = output.destination((_RPD, *_ENDINGS) if trace else _ENDINGS, "trimmed")
        path = target.path(_RPD if trace else _ENDINGS[0])
        if trace and path.suffix == _RPD:
            _refuse_filters(job)
            _write_rpd(session, trace, path, output.force)
        else:
            from rocpd.federate.merge import merge

            with progress("trim") as report:
                merge(session, path, output.force, report)
        ranks = len(session.ranks)
    report_written(path, f"{amount(ranks, 'rank')}, ")


def _rpd_file(inputs: Inputs) -> Path | None:
    """Return the RPD file if it is the only input, else None."""
    from rocpd.importers import importer_of

    paths = [Path(path) for path in inputs.paths]
    if len(paths) != 1 or not paths[0].is_file():
        return None
    importer = importer_of(paths[0])
    return paths[0] if importer and importer.name == "rpd" else None


def _refuse_filters(selection: SelectionOptions) -> None:
    for name in ("agent", "stream", "category", "kernel", "exclude_kernel"):
        if getattr(selection, name) is not None:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} does not cut an RPD file", "give -o a name that ends in .db")


def _write_rpd(session: Session, trace: Path, target: Path, force: bool) -> None:
    from rocpd.federate.select.selection import Part
    from rocpd.importers.files import TraceSource
    from rocpd.importers.rpd.trim import trim_rpd

    window = session.window  # None where the window holds everything
    parts = {rank.plain_guid: window.part(rank.number) if window else Part(None, None) for rank in session.ranks}
    with TraceSource(trace) as source:
        trim_rpd(source, target, parts, force)


@frozen
class PackageOptions:
    """The folder of the package, and whether files move or are copied."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Path | None = plain(
        None,
        "The package; .rpdb is added. Without it, or for `.`: ./index.yaml is written, with --copy or -c job.rpdb.",
        "NAME.rpdb",
        ("-o", "-d", "--output-path"),
        hidden_flags=("--output-file",),
    )
    copy: bool = plain(False, "Copy the files into the package, with --consolidate too.")
    consolidate: bool = plain(False, "Move the files into the package; needs --yes.", flags=("-c", "--consolidate"))
    yes: bool = plain(False, "Confirm that the raw files may be moved.")
    with_index: bool = plain(False, "Build an index in the package, as `rocpd index` does.")
    force: bool = plain(False, "Replace an existing package or index.yaml.")

    @property
    def target(self) -> Path:
        """The package, or index.yaml if only that is written; a folder without a name of its own holds it."""
        folder = self.folder or Path()
        if folder.name in ("", ".."):
            return folder / ("job.rpdb" if self.copy or self.consolidate else "index.yaml")
        return folder if folder.suffix == ".rpdb" else folder.with_name(folder.name + ".rpdb")


def package(inputs: Inputs, asked: PackageOptions) -> None:
    """Put the files of a job under one name.

    A package is a folder with a list of files, index.yaml, which every command takes as input. Every file that it lists
    was opened and is a database of the job. Without --copy or --consolidate the files stay where they are; without -d
    only the list is written, into the working folder.

    Examples:
        rocpd package node*/*_results.db -d job.rpdb
        rocpd package node*/*_results.db
        rocpd package results/ -d job.rpdb --copy --with-index
        rocpd summary job.rpdb
    """
    from rocpd.federate.open.source import INDEX, INDEX_FOLDER
    from rocpd.federate.package import FilePlacement, write_index
    from rocpd.federate.package import package as write_package
    from rocpd.importers.run import is_cached

    if asked.consolidate and not asked.copy and not asked.yes:
        raise UsageError("--consolidate moves the raw files into the package", "add --yes to do it, or take --copy")
    if asked.with_index and asked.target.name == INDEX:
        raise UsageError("--with-index: there is no package to hold it", "-d NAME.rpdb writes one")
    placement = FilePlacement.COPY if asked.copy else FilePlacement.MOVE if asked.consolidate else FilePlacement.STAY
    target = asked.target
    with whole(inputs).connect() as session, progress("package", "files") as report:
        if placement is not FilePlacement.COPY and any(is_cached(rank.opening.path) for rank in session.ranks):
            raise UsageError("imported traces lie in the cache, which may drop them", "--copy, or rocpd import first")
        files: Collection[Path] = (
            write_index(session, target, asked.force)
            if target.name == INDEX
            else write_package(session, target, placement, asked.force, report)
        )
    how = {FilePlacement.STAY: "", FilePlacement.COPY: " (copied)", FilePlacement.MOVE: " (moved)"}[placement]
    report_written(target, f"{amount(len(files), 'file')}{how}, ")
    if asked.with_index:
        # Derived facts belong to the cache of the user, not into the package.
        options = IndexOptions(target / INDEX_FOLDER, no_summary=True)
        try:
            index(Inputs((str(target),)), options, Execution())
        except InputError as error:  # in a damaged part that only the index reads: the package is complete
            note(f"no index in the package: {error.message}")


@frozen
class Place:
    """The folder of the files."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Path = plain(Path("redacted"), "New folder for rank0.db …", "DIR", ("-d", "--output-path"))
    force: bool = plain(False, "Replace a folder that an earlier run wrote.")


def redact(job: JobChoice, asked: RedactOptions, place: Place) -> None:
    """Write files of a job that can be given away.

    Hosts, machines, users, paths, arguments, URLs, addresses and secrets get names such as host-01, the same in all
    ranks; of the environment only settings of the GPU's libraries stay. Durations, ids and counts do not change: every
    analysis gives the same numbers. Then the files are searched for the replaced texts; if one of them is still there,
    nothing is written.

    Examples:
        rocpd redact job/ -d for-support
        rocpd redact job/ --dry-run
        rocpd redact job/ -d public --level strict --start 40% --end 60%
    """
    from rocpd.redact.run import redact as write_redacted

    with job.connect() as session:
        with progress("redact", "ranks") as report:
            counts = write_redacted(session, place.folder, asked, place.force, report)
        ranks = len(session.ranks)
    rows = [(table, column, number) for (table, column), number in sorted(counts.items())]
    tables.write_table(("table", "column", "replaced"), rows, TableOptions())
    if asked.dry_run:
        note(f"would write {amount(ranks, 'file')} to {place.folder}")
    else:
        report_written(place.folder, f"{amount(ranks, 'file')}, ")


@frozen
class DebugOptions:
    """The folders of debugging information, and of the files."""

    debug_dir: tuple[Path, ...] = declare(
        (), "Folder of debugging information or unstripped libraries, found by build id; may be repeated.", "DIR"
    )
    folder: Path = declare(
        Path("symbolized"), "New folder for the files.", "DIR", ("-d", "--output-path"), Heading.OUTPUT
    )
    force: bool = declare(False, "Replace a folder that an earlier run wrote.", heading=Heading.OUTPUT)


def symbolize(inputs: Inputs, asked: DebugOptions) -> None:
    """Name functions of stripped libraries, from debug files elsewhere.

    Call stacks that rocpd record --stacks took hold lib.so+0x1234 where a library was stripped, and its build id. This
    writes copies of the files, in which these frames have their functions, lines and inlined functions.

    Examples:
        rocpd symbolize job/ --debug-dir /opt/app/debug -d named
        rocpd summary stacks named
    """
    from rocpd.record.symbolize import symbolize as write_symbolized

    if not asked.debug_dir:
        raise UsageError("no --debug-dir: there is nothing to take names from", "rocpd symbolize job --debug-dir DIR")
    with whole(inputs).connect() as session, progress("symbolize", "files") as report:
        counts = write_symbolized(session, asked.folder, asked.debug_dir, asked.force, report)
    note(f"{amount(counts.named, 'place')} of {counts.places} have names now, {counts.libraries} of libraries found")
    report_written(asked.folder, f"{amount(counts.files, 'file')}, ")


@frozen
class IndexOptions:
    """The folder of the index."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Path | None = plain(
        None,
        "Folder of the index, for other users or machines; their commands get it as --index-folder.",
        "DIR",
        ("-d", "--output-path"),
    )
    no_summary: bool = plain(False, "Only the index: the first rocpd summary reads the files.")


def index(inputs: Inputs, asked: IndexOptions, execution: Execution) -> None:
    """Build an index, from which queries and summaries are answered.

    The events of each rank are stored once more, by column: about a thirtieth of the size of the files. From then on
    every command uses the index, unless a file has changed; answers are the same. It lies in
    $XDG_CACHE_HOME/rocpd/index, else ~/.cache/rocpd/index (rocpd cache), or in a folder of your choice. A rank that has
    an index is left alone. The facts that rocpd summary derives of ranks are kept in the cache, too. The files are only
    read.

    Examples:
        rocpd index job/
        rocpd query "select name, sum(duration) from kernels group by name" job/
        rocpd index job/ -d /shared/index
    """
    from rocpd.index.build import build

    folder = asked.folder or execution.index_folder
    with whole(inputs, execution).connect() as session, progress("index", "ranks") as report:
        built = build(session, folder, report)
        paths = {rank.number: rank.opening.path for rank in session.ranks}
    new = [each for each in built if each.is_new]
    known = sum(1 for each in built if not each.is_new and not each.why_not)
    size = sum(each.size for each in built) / 1e6
    there_already = f", {amount(known, 'rank')} had one" if known else ""
    note(f"indexed {amount(len(new), 'rank')}{there_already} ({size:.1f} MB)")
    for each in built:
        if each.why_not:
            note(f"{paths[each.rank]}: not indexed: {each.why_not}")
    if all(each.why_not for each in built):
        raise RocpdError("no rank can be indexed", "commands read the files, as they do without an index")
    if not asked.no_summary and not any(each.why_not for each in built):
        _keep_facts(inputs, dataclasses.replace(execution, index=IndexUse.AUTO, index_folder=folder))


def _keep_facts(inputs: Inputs, execution: Execution) -> None:
    """Run the overview of `rocpd summary`: with an index, the facts that it derives are kept."""
    from rocpd.summary.reading import run

    with (
        contextlib.suppress(RocpdError),  # `rocpd summary` reports what the job lacks
        whole(inputs, execution).connect() as session,
        progress("summary", "") as report,
    ):
        for table in run(session, OVERVIEW, progress=report):
            list(table)


class CacheAction(enum.StrEnum):
    """The actions on the cache."""

    LIST = "list"
    CLEAR = "clear"


@frozen
class CacheOptions:
    """The action, and the format of its answer."""

    action: CacheAction = plain(REQUIRED, "What to do.", "list|clear", is_positional=True, is_required=True)
    format: str = tables.format_option()


def cache(asked: CacheOptions) -> None:
    """List or remove imported, indexed and derived data of ranks.

    Traces of other profilers are imported once, into $XDG_CACHE_HOME/rocpd/import, else ~/.cache/rocpd/import; the
    index lies beside them, and so do the facts that commands derived of files. Above $ROCPD_CACHE_SIZE (20G) of one of
    them, the entries that were unused for longest are removed, along with those of files that have changed since. An
    index in a folder of your choice is neither listed nor removed.

    Examples:
        rocpd cache list
        rocpd cache clear
    """
    from rocpd.base.cache import file_entries
    from rocpd.base.home import cache_root
    from rocpd.importers.run import imports
    from rocpd.index.entries import indexes

    imported = imports()
    others = {"index": indexes(cache_root("index")), "facts": file_entries("facts")}
    caches = [imported, *others.values()]
    if asked.action is CacheAction.CLEAR:
        freed = sum(each.clear() for each in caches)
        note(f"removed {freed / 1e6:.1f} MB")
        return
    rows = [
        *((each.source, each.importer, len(each.files), each.size, _time(each.used)) for each in imported.entries()),
        *((each.source, what, 1, each.size, _time(each.used)) for what in others for each in others[what].entries()),
        *((str(e.folder), "unreadable", 0, e.size, _time(e.used)) for each in caches for e in each.unreadable()),
    ]
    tables.write_table(("source", "made_by", "ranks", "bytes", "last_used"), rows, TableOptions(), asked.format)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%F %T}"
