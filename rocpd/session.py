"""The session for users: files as one database, opened by `connect`.

The only module that knows both the federation and the parts built on it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocpd.base import InputError, Progress, frozen
from rocpd.base.entries import fields_of, lists_options
from rocpd.base.home import has_cache_folder
from rocpd.base.option import member
from rocpd.base.output import destination
from rocpd.convert import FORMATS, check_options, endings_of, find
from rocpd.convert.options import ConvertOptions
from rocpd.facts.rank import By, Options
from rocpd.federate import limits as standard
from rocpd.federate.connect import HowToOpen, Inputs, Workers, open_job
from rocpd.federate.federation import Federation, Notes, OnNote
from rocpd.federate.job import Job
from rocpd.federate.limits import Limits
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.source import INDEX_FOLDER
from rocpd.federate.plan.steps import IndexUse
from rocpd.federate.result import Result, Rows
from rocpd.federate.run.rank_reader import FactStore
from rocpd.federate.run.shares import Columnar
from rocpd.federate.select.align import Align, GivenOffset
from rocpd.federate.select.filters import Filters, unmatched
from rocpd.federate.select.selection import Selection
from rocpd.federate.select.window import Window
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary.registry import SUMMARIES

if TYPE_CHECKING:
    from rocpd.advice.advice import Advice
    from rocpd.compare.comparison import Comparison
    from rocpd.compare.options import DiffOptions
    from rocpd.federate.describe import Description
    from rocpd.federate.relation import Relation
    from rocpd.federate.run.calculated import Calculation, Load
    from rocpd.federate.select.clocks import ClockJump, ClockLine
    from rocpd.redact.options import RedactOptions
    from rocpd.replay.answer import WhatIf
    from rocpd.summary.result import Summary


class Session(Federation):
    """Many rocpd files as one read-only database. Made by `rocpd.connect`; use it in a `with` block or call `close`.

    Several threads may share one, with its temp tables; they take turns if they share a connection. A forked child may
    use, close or ignore the session of its parent: it has no temp tables of the parent, rows that the parent began to
    read belong to the parent, and on a cluster it has to connect anew.

    >>> import rocpd
    >>> with rocpd.connect(["rank0.db", "rank1.db"]) as session:
    ...     frame = session.sql("select name, duration from kernels").df()
    ...     by_rank = session.where(rocpd.Filters(ranks="0-1")).summary("kernels", by="rank")
    ...     middle = session.within(rocpd.Window("30%", "60%")).summary("kernels")
    """

    @lists_options({name: analysis.options for name, analysis in SUMMARIES.items()})
    def summary(
        self,
        name: str,
        by: str | By | None = None,
        *,
        kernel_names: str | KernelNames = KernelNames.DISPLAY,
        **options: object,
    ) -> Summary:
        """Return one table of an analysis, such as `kernels`, `gaps` or `stragglers`; `rocpd.analyses()` lists them.

        Args:
            name: an analysis or one of its tables.
            by: `rank`, `host`, `run`, `command`, `agent`, `stream`, or of GPU work `step` or `marker`; None: undivided.
            kernel_names: `display` names, shortened for people, `full` names, `mangled` names, or bare function names
                (`truncated`).
            options: options that the analysis reads, see below; one of an installed package may have its own.

        Raises:
            UsageError: the name is unknown, the analysis does not read an option, or a value is invalid.
            RocpdError: the job lacks data that the analysis needs; the message names it.
        """
        from rocpd.summary.reading import summary

        division = None if by is None else member(By, "by", by)
        return summary(self, name, division, member(KernelNames, "kernel_names", kernel_names), options)

    @lists_options({name: entry.options for name, entry in FORMATS.items()})
    def convert(
        self,
        format: str,
        path: str | Path = "out",
        *,
        force: bool = False,
        on_progress: Progress | None = None,
        **options: object,
    ) -> tuple[Path, ...]:
        """Write all ranks, with their selected rows, as a trace or tables; return the paths written.

        Args:
            format: `pftrace`, `otf2`, `csv`, `parquet`, `arrow`, `json`, or a format of an installed package.
            path: the output, relative to the working directory: with an ending of the format (`out.pftrace`) it is
                written as given; without one it is a base name, to which the format adds its endings.
            force: replace existing outputs.
            on_progress: called with (rows done, rows in all).
            options: options that the format reads, see below; one of an installed package may have its own.

        Raises:
            UsageError: the format is unknown, does not read an option, or a value is invalid.
            OutputError: an output exists (without `force`) or cannot be written.
            InputError: an input is damaged.
        """
        chosen = find(format)
        target = destination(os.fspath(path), Path(), endings_of([chosen]))
        if without_effect := check_options([chosen], options):
            self.note(f"without effect on {chosen.name}: {', '.join(without_effect)}")
        outputs = ConvertOptions.at(target, force, **fields_of(ConvertOptions, chosen.values(options)))
        return chosen.write(self.in_rows, outputs, on_progress)

    def calculated(self) -> Mapping[str, Load]:
        """Return calculated table -> function that returns it for SQL."""
        from rocpd.summary.relations import RELATIONS

        alike = self._with(self.job, self.selection)  # a connection that held this session would keep it alive
        return {name: partial(_calculated, load, alike) for name, load in RELATIONS.items()}

    def merge(self, path: str | Path, *, force: bool = False, on_progress: Progress | None = None) -> Path:
        """Write all ranks, with their selected rows, into one SQLite file; return its path.

        Args:
            path: the file to write, relative to the working directory; it appears when it is complete and verified.
            force: replace an existing file.
            on_progress: called with (rows copied, rows in all).

        Raises:
            OutputError: the file exists, cannot be written, or fails verification.
            InputError: an input is damaged.
        """
        from rocpd.federate.merge import merge

        merge(self, Path(path), force, on_progress)
        return Path(path)

    def report(
        self,
        path: str | Path = "report.html",
        sections: Iterable[str] = (),
        *,
        base: Session | None = None,
        force: bool = False,
        on_progress: Progress | None = None,
        **options: object,
    ) -> Path:
        """Write the verdict, charts and tables of the job as one file; return its path.

        Args:
            path: the file, relative to the working directory; its ending chooses the format, see `rocpd report --help`.
            sections: names of sections; empty: all.
            base: a job to compare with, in a section of its own.
            force: replace an existing file.
            on_progress: called with (done, of all).
            options: options of analyses: `categories`, `step_marker`, `everything`, `bins`.

        Raises:
            UsageError: an ending, section or option is unknown, or a package that the format needs is not installed.
            OutputError: the file exists (without `force`) or cannot be written.
            InputError: an input is damaged.
        """
        from rocpd.report.build import ReportOptions, asked_of_analyses, base_of, write

        asked = asked_of_analyses(options)
        chosen = ReportOptions(tuple(sections), asked, base=base_of(base, asked) if base else None)
        write(self, Path(path), chosen, force, on_progress)
        return Path(path)

    def diff(self, base: Session, options: DiffOptions | None = None) -> Comparison:
        """Return whether this job is slower than another, and where the difference is; as `rocpd diff`.

        Args:
            base: the job to compare with; separate runs in it, or in this one, count as runs of their side.
            options: `rocpd.compare.options.DiffOptions`; None: its defaults.

        Raises:
            UsageError: the metric is unknown, or a text is not a regular expression.
            RocpdError: a side has no operations.
        """
        from rocpd.compare.options import DiffOptions
        from rocpd.compare.run import compare_sessions

        return compare_sessions(base, self, options or DiffOptions())

    def redact(
        self, folder: str | Path, options: RedactOptions | None = None, *, force: bool = False
    ) -> dict[tuple[str, str], int]:
        """Write files for others, one per rank; return (table, column) -> number of texts replaced.

        Args:
            folder: new folder, relative to the working directory.
            options: values to replace: `rocpd.redact.options.RedactOptions`; None: the places and users of the job.
            force: replace a folder that an earlier run wrote.

        Raises:
            OutputError: the folder exists or cannot be written, or a file would still hold a replaced text.
            InputError: an input is damaged.
        """
        from rocpd.redact.options import RedactOptions
        from rocpd.redact.run import redact

        return dict(redact(self, Path(folder), options or RedactOptions(), force))

    def advise(
        self,
        *,
        thresholds: str | Path | None = None,
        categories: str | Path | None = None,
        step_marker: str | None = None,
        on_progress: Progress | None = None,
    ) -> Advice:
        """Return the causes of lost time and what to do about them: `findings`, and the rules that looked or could not.

        Args:
            thresholds: TOML with other thresholds: `[rule]`, `name = number`.
            categories: JSON or TOML file of kernel categories; None: the built-in one.
            step_marker: regular expression for the text of markers that are steps.
            on_progress: called with (done, of all).

        Raises:
            InputError: a file can't be read.
            UsageError: the content of a file makes no sense.
        """
        from rocpd.advice.judge import advise

        given = {"categories": Path(categories) if categories else None, "step_marker": step_marker}
        options = Options(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        return advise(self, options, Path(thresholds) if thresholds else None, on_progress)

    def whatif(
        self,
        *,
        without: Iterable[str] = (),
        scale: Iterable[str] = (),
        overlap: Iterable[str] = (),
        categories: str | Path | None = None,
        step_marker: str | None = None,
    ) -> WhatIf:
        """Predict how long a step would take, had something been different; by default without each cause found.

        Args:
            without: such as `rank:6`, `straggler`, `host:NAME`, `link:0-3`, `step:7`, `call:hipMalloc`, `gap:1`.
            scale: such as `launch=0.5`, `kernel:GEMM.*=0.7`, `collective:all-reduce=0.8`, `copies=0`.
            overlap: `comm`, `comm:RANKS` or `copies`.
            categories: JSON or TOML file of kernel categories; None: the built-in one.
            step_marker: regular expression for the text of markers that are steps.

        Raises:
            UsageError: a word is no change, two contradict each other, or a window or filters of events are chosen.
            RocpdError: a change matches nothing in the job, or there is no GPU work.
        """
        from rocpd.replay.changes import changes
        from rocpd.replay.whatif import what_if
        from rocpd.schema.rules.kernel_categories import load
        from rocpd.schema.rules.steps import STEP_MARKER

        known = load(Path(categories) if categories else None)
        return what_if(self, changes(without, scale, overlap), known, step_marker or STEP_MARKER)

    def info(self) -> Description:
        """Return the content of the job: `ranks`, `agents`, `tables`, `clocks` `problems`, each a Result by name."""
        from rocpd.federate.describe import describe

        return describe(self)

    def __repr__(self) -> str:
        """Return the table of ranks."""
        return repr(Result(self._ranks))

    def _repr_html_(self) -> str:
        return Result(self._ranks)._repr_html_()

    def _ranks(self) -> Rows:
        columns = ("rank", "host", "pid", "command", "file")
        rows = ((r.number, r.hostname, r.pid, r.command, str(r.opening.path)) for r in self.ranks)
        return Rows(columns, rows)


def connect(  # noqa: PLR0913 (keywords, each an everyday choice)
    inputs: Inputs = None,
    *,
    skip_bad: bool = False,
    align: str | Align = Align.AUTO,
    clock_offsets: Mapping[str, GivenOffset] | None = None,
    window: Window | None = None,
    filters: Filters | None = None,
    all_passes: bool = False,
    client: Workers = None,
    jobs: int | None = None,
    index: str | IndexUse = IndexUse.AUTO,
    index_folder: str | Path | None = None,
    limits: Limits | None = None,
    on_note: OnNote | None = None,
    on_progress: Progress | None = None,
) -> Session:
    """Open rocpd files as one database; traces of other profilers are imported first, once, into a cache.

    Args:
        inputs: file, glob, folder, package or a list of them; None: `$ROCPD_INPUT`, else the files of the working
            directory.
        skip_bad: leave out files that cannot be used, with a note, instead of raising.
        align: how ranks are aligned on one time line, if they have to be: `auto` (`collectives`, without information
            in them the time of day or the first events of machines), `start` (first events of ranks) or `none`.
        clock_offsets: host -> offset to add to its times [ns], or (offset, its largest error); replaces `align`.
        window: only events in it count.
        filters: only these ranks, hosts, agents, streams, categories or kernels count.
        all_passes: SQL and converters read all passes of a program, which ran for different counters, not only one.
        client: its workers read: a `distributed.Client`, the address of a Dask scheduler, or a `Cluster` of
            `rocpd.federate.run.cluster`, which has more options; None: the cores of this machine.
        jobs: threads and processes that work on ranks on this machine; None: one per core where that is faster.
        index: use of the index of `rocpd index`: `auto` (if there is one that fits), `require` or `off`.
        index_folder: its folder; None: in the package, else in `$ROCPD_INDEX_FOLDER`, else in the user's cache.
        limits: sizes and times at which the way of working changes.
        on_note: called with each line that the user should know.
        on_progress: called with (bytes read, bytes in all) while traces of other profilers are imported.

    Raises:
        InputError: no file matches, or one cannot be used; or the index is required, and a rank has none.
        UsageError: a window or filter is invalid.
        RocpdError: no event lies in the window and passes the filters.
    """
    notes, chosen, imports = Notes(on_note), limits or standard.DEFAULT, _Imports(on_progress)
    indexes = _Indexes(IndexUse(index), None if index_folder is None else Path(index_folder), jobs)
    how = HowToOpen(skip_bad, Align(align), clock_offsets, client, jobs, chosen, _clock_lines, imports, *indexes.looks)
    with contextlib.ExitStack() as undo:
        whole = undo.enter_context(Session(open_job(inputs, how, notes, all_passes), Selection(), notes))
        indexes.check(whole.job.files.index)
        return _owning(_selected(whole, window, filters), undo)


def _calculated(load: Callable[[], Relation], session: Session) -> Calculation:
    from rocpd.federate.run.calculated import Calculation

    relation = load()
    return Calculation(relation.table, partial(relation.rows, session))


def _owning(selected: Session, undo: contextlib.ExitStack) -> Session:
    undo.pop_all()
    return Session(selected.job, selected.selection, selected.notes)


def _selected(whole: Session, window: Window | None, filters: Filters | None) -> Session:
    selected = whole.where(filters) if filters else whole
    for note in unmatched(whole.ranks, filters) if filters else ():
        whole.note(note)
    if whole.job.clock_offsets:
        _ = selected.alignment  # an offset for an unknown host is refused now, not when times first matter
    return selected.within(window) if window else selected


def advise(inputs: Inputs = None, *, thresholds: str | Path | None = None) -> Advice:
    """Open rocpd files, and return the causes of lost time and what to do; as `connect` and `Session.advise`.

    Args:
        inputs: as `connect` takes them.
        thresholds: TOML with other thresholds: `[rule]`, `name = number`.

    Raises:
        InputError: no file matches, or one cannot be used.
        UsageError: the content of the file of thresholds makes no sense.
    """
    with connect(inputs) as session:
        return session.advise(thresholds=thresholds)


def _clock_lines(job: Job, clocks: Mapping[int, int]) -> Sequence[ClockLine | ClockJump | None]:
    from rocpd.facts.communication.meetings import clock_lines

    return clock_lines(job, clocks)


@frozen
class _Indexes:
    """The search for the index of a job; the modules for it are imported on demand."""

    use: IndexUse
    folder: Path | None
    threads: int | None

    def find(self, ranks: Sequence[Rank], packages: Sequence[Path]) -> Columnar | None:
        if self.use is IndexUse.OFF:
            return None
        from rocpd.index.columnar import Index

        for package in packages:
            if (folder := package / INDEX_FOLDER).is_dir():
                index = Index(ranks, folder, self.threads)
                if not index.why_not:
                    return index
        return Index(ranks, self.folder, self.threads)

    @property
    def looks(
        self,
    ) -> tuple[Callable[[Sequence[Rank], Sequence[Path]], Columnar | None], Callable[[], FactStore | None]]:
        """The functions that find the index, and the store of facts."""
        return self.find, self.facts

    def facts(self) -> FactStore | None:
        """Return the store of facts of ranks, in the user's cache."""
        if self.use is IndexUse.OFF or not has_cache_folder():
            return None
        from rocpd.index import facts

        return facts.FactCache()

    def check(self, index: Columnar | None) -> None:
        if self.use is IndexUse.REQUIRE and index and index.why_not:
            raise InputError(f"no index: {index.why_not}", "rocpd index builds one, of files that nobody writes to")


@frozen
class _Imports:
    """Imports files of other profilers; the modules for it are imported on demand."""

    progress: Progress | None

    def inside(self, folder: Path) -> Sequence[Path]:
        from rocpd.importers import inputs_in

        return inputs_in(folder)

    def imported(
        self, paths: Sequence[Path], jobs: int | None, on_note: OnNote
    ) -> Mapping[Path, Sequence[Path] | InputError]:
        from rocpd.importers.run import import_once

        return import_once(paths, jobs, on_note, self.progress)
