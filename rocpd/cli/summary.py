"""`rocpd summary`: where the time went, by kernel, copy, function, marker or domain; counters and raptor.

`--follow` prints kernels as files grow, until Ctrl-C. Files are opened anew when they change: a profiler may go on to
another file, replace one, or be in the middle of a transaction, whose rows appear when it ends.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rocpd.base import AmdVersion, OutputError, RocpdError, Row, UsageError, by_key, entries, frozen
from rocpd.base.option import Heading, declare, field_of, plain
from rocpd.base.texts import as_data
from rocpd.cli import tables
from rocpd.cli.argv import split_names
from rocpd.cli.commands import COMMANDS, Asked, also_takes
from rocpd.cli.diagnostics import note, standard_output, until_ctrl_c
from rocpd.cli.options import Inputs, JobChoice, TableOptions, whole
from rocpd.cli.tables import Delivery, TextDelivery, amds_tables, run_analyses
from rocpd.facts.rank import By, Options
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary.registry import (
    OVERVIEW,
    SUMMARIES,
    TOTALS,
    Analysis,
    check_options,
    known_analyses,
    tables_of,
    texts_of,
)
from rocpd.table import find_format

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.summary.summarize import SummaryOptions


ALL = "all"
"""Stands for all built-in analyses; an analysis that lacks data says so."""


def _names() -> list[str]:
    return [*tables_of(known_analyses()), ALL]


def _formats() -> list[str]:
    return [*tables.of_analyses(), *texts_of(known_analyses())]


def _format_listing() -> str:
    texts = [(name, [text.name for text in analysis.texts]) for name, analysis in known_analyses().items()]
    alike = by_key((", ".join(of), name) for name, of in texts if of)
    formats = (f"of {', '.join(names)}: {of}" for of, names in alike.items())
    return "; ".join([", ".join(tables.of_analyses()), *formats])


@frozen
class NamedJob(JobChoice):
    """The names of analyses, and the job."""

    words: tuple[str, ...] = plain(
        (),
        "Names of summaries (--list), then files, globs, folders, *.rpdb packages.",
        "[NAMES] [INPUTS]...",
        is_positional=True,
        complete=_names,
    )


@frozen
class SummaryChoice:
    """The question, and the format of its tables."""

    by: By | None = plain(None, "Divide the tables.")
    list: bool = plain(False, "List the names of summaries.")
    list_categories: bool = declare(False, "List the domains and categories that the inputs hold.")
    summary_by_rank: bool = declare(False, "Without names: also each table by rank.", heading=Heading.AMD)
    domain_summary: bool = declare(False, "Without names: also the time by domain.", heading=Heading.AMD)
    region_categories: tuple[str, ...] = declare(
        (),
        "Without names: domains to show, HIP MARKERS KERNEL …, or NONE: no API domains.",
        "NAME...",
        heading=Heading.AMD,
    )
    amd: bool = declare(False, "The tables that AMD's users know, as without names.", heading=Heading.AMD)
    amd_version: AmdVersion = declare(
        AmdVersion.V2025, "Heads and categories of AMD's tool of this year.", heading=Heading.AMD
    )
    mangled_kernels: bool = declare(False, "Mangled kernel names.")
    truncate_kernels: bool = declare(False, "Kernel names without signature and template.")
    full_names: bool = declare(False, "Kernel names in full, which the console and pages show short.")
    format: str = tables.format_option("Format of the tables, else by the ending of -o:", _formats, _format_listing)
    follow: bool = declare(
        False, "op-trace --format logduration: print kernels as files grow, until Ctrl-C.", heading=Heading.OUTPUT
    )
    limit: int | None = field_of(None, tables.LIMIT)

    @property
    def kernel_names(self) -> KernelNames:
        """The form of kernel names.

        Raises:
            UsageError: several forms are asked for.
        """
        forms = {
            "--mangled-kernels": (self.mangled_kernels, KernelNames.MANGLED),
            "--truncate-kernels": (self.truncate_kernels, KernelNames.TRUNCATED),
            "--full-names": (self.full_names, KernelNames.FULL),
        }
        asked = {flag: names for flag, (is_given, names) in forms.items() if is_given}
        if len(asked) > 1:
            raise UsageError(f"{' and '.join(asked)} contradict each other")
        return next(iter(asked.values()), KernelNames.DISPLAY)

    @property
    def is_amds(self) -> bool:
        """Whether an option of AMD's tables is given."""
        asked = self.amd or self.summary_by_rank or self.domain_summary or bool(self.region_categories)
        return asked or self.amd_version is not AmdVersion.V2025

    @property
    def amds_options(self) -> SummaryOptions:
        """The options of AMD's tables.

        Raises:
            UsageError: a domain is not a name.
        """
        from rocpd.summary.summarize import SummaryOptions

        names = self.region_categories
        for name in names:
            if not re.fullmatch(r"[\w-]+", name):
                raise UsageError(f"--region-categories {name}: not the name of a domain", "such as HIP MARKERS KERNEL")
        regions = [name for name in names if name.upper() != "NONE"] if names else None
        return SummaryOptions(self.summary_by_rank, self.domain_summary, regions, self.kernel_names, self.amd_version)


@also_takes(lambda: entries.shown({name: analysis.options for name, analysis in known_analyses().items()}))
def summary(chosen: SummaryChoice, job: NamedJob, output: TableOptions, asked: Asked) -> None:
    """Show where the time went, exact over all ranks.

    Without names: problems, the parts of the time, and the work that takes it. With names: these summaries, with
    suitable units on the console and exact in files; `all` names every one. `rocpd schema NAME` explains the columns.

    With --amd, another option of AMD's tables, or --format and no names: the tables that AMD's users know. Durations
    are nanoseconds, percentages are of the table (by rank: of the rank), STD_DEV is the sample deviation. On the
    console and without -o or -d they go to stdout; else one file each, <NAME>_<table>.<format>.

    Examples:
        rocpd summary job/
        rocpd summary --list
        rocpd summary kernels copies --by rank job/
        rocpd summary budget job/ --step 7
        rocpd summary job/ --summary-by-rank --format csv -d summaries
    """
    analyses = known_analyses()
    if chosen.list:
        rows = ((name, " ".join(analysis.tables[1:]), analysis.help) for name, analysis in analyses.items())
        _write(("name", "more tables", "what"), rows, output)
        return
    names, paths = _names_and_paths(chosen, job, output, analyses)
    job = job.only(paths)
    if not chosen.list_categories:
        given = [name for name in asked.given if name != "step_marker" or job.step is None]
        asked.refuse_taken(check_options(names or TOTALS, given, analyses))
    options = Options(chosen.by, chosen.kernel_names, **asked.fields(Options))
    delivery = _delivery(chosen, output, names, analyses)
    if chosen.follow:
        _follow(delivery, job, options)
        return
    with job.connect(has_analyses=True) as session:
        if chosen.list_categories:
            from rocpd.federate.select.filters import event_categories

            _write(("domain", "category", "events"), iter(event_categories(session.map_ranks)), output)
        elif isinstance(delivery, TextDelivery):
            delivery.write(session, options)
        elif names:
            delivery.write(*run_analyses(session, names, options))
        else:
            delivery.write(*amds_tables(session, chosen.amds_options))


def _names_and_paths(
    chosen: SummaryChoice, job: NamedJob, output: TableOptions, analyses: Mapping[str, Analysis]
) -> tuple[list[str], list[str]]:
    """Return the names of the analyses asked for, none for AMD's tables, and the files.

    Raises:
        UsageError: there are both names and options of AMD's tables.
    """
    certain = [word for word in job.named if os.path.lexists(word)]
    words = [word for word in job.paths if word not in certain]
    names, others = split_names(words, [*tables_of(analyses), ALL], COMMANDS)
    paths = [*certain, *others]
    for name in () if paths else filter(os.path.isdir, names):
        note(f"{name} is the summary; the folder of that name is ./{name}")
    names = [name for name in SUMMARIES if name != OVERVIEW] if ALL in names else list(dict.fromkeys(names))
    if chosen.by and not names:
        names = list(TOTALS)
    if not names and not chosen.is_amds and not chosen.format and not output.is_asked:
        names = [OVERVIEW]
    if names and chosen.is_amds:
        raise UsageError(
            "--summary-by-rank, --domain-summary, --region-categories and --amd are for summaries without names",
            "with names: --by rank, `domains`, --category",
        )
    return names, paths


def _follow(delivery: Delivery | TextDelivery, job: JobChoice, options: Options) -> None:
    """Print kernels as files grow, and each note once.

    Raises:
        UsageError: another output, or a file to write, was asked for.
    """
    from rocpd.federate.federation import Notes

    if not isinstance(delivery, TextDelivery) or delivery.text.name != "logduration":
        raise UsageError(
            "--follow: only op-trace in the format logduration can go on as files grow",
            "rocpd summary op-trace --format logduration --follow",
        )
    if delivery.target:
        raise UsageError("--follow: writes to stdout: a file appears when it is complete", "leave out -o and -d")
    notes = Notes(note)
    connect = partial(job.connect, has_analyses=True, on_note=notes.add)
    with tables.open_output(None, delivery.output) as out:
        follow(connect, job.paths, options, out, notes.add)


def _delivery(
    chosen: SummaryChoice, output: TableOptions, names: Sequence[str], analyses: Mapping[str, Analysis]
) -> Delivery | TextDelivery:
    """Return the delivery of the tables of analyses, or of AMD's tables if no analysis is named.

    Raises:
        UsageError: the format is unknown, or belongs to another analysis.
    """
    texts = texts_of(analyses)
    endings = {text.ending: name for name, forms in texts.items() for text in forms.values()} | tables.endings()
    name = chosen.format.lower() or tables.format_by_ending(output.name, endings)
    if name in texts:
        forms = texts[name]
        if len(names) != 1 or names[0] not in forms:
            which = " and ".join(forms)
            hint = f"rocpd summary {next(iter(forms))} --format {name}"
            raise UsageError(f"--format {name} is a format of {which}", hint)
        text = forms[names[0]]
        target = output.destination([text.ending]) if output.is_asked else None
        return TextDelivery(names[0], text, target, output)
    return Delivery.of(find_format(name, of_analyses=True, further=texts), output, chosen.limit, is_split=not names)


def _write(columns: Sequence[str], rows: Iterator[Row], output: TableOptions) -> None:
    with tables.open_output(None, output) as out:
        tables.write_rows(columns, rows, out)


_OF_COUNTERS = ("collected", "passes", "panels", "to-collect")


@frozen
class CountersChoice:
    """The format, and the number of rows."""

    format: str = tables.format_option()
    limit: int = plain(0, "Most rows of a table, 0: all.", "N", heading=Heading.OUTPUT, least=0)


def counters(job: JobChoice, chosen: CountersChoice, output: TableOptions) -> None:
    """Show which hardware counters were collected, and for what.

    Which counters, in which passes of the program, for how many dispatches; how much the times of passes differ; how
    many metrics of each panel have all their counters, and the options of rocprofv3 that collect the others. The panels
    themselves are analyses: `rocpd summary speed-of-light job/`.

    Examples:
        rocpd counters job/
        rocpd counters job/ --format csv -d counters
    """
    form, _ = tables.format_and_path(chosen.format, output, of_analyses=True)
    delivery = Delivery.of(form, output, chosen.limit)
    with job.connect(has_analyses=True) as session:
        summaries, _ = run_analyses(session, _OF_COUNTERS, Options())
        known = {summary.name: summary for summary in summaries}
        shown = [known[name] for name in _OF_COUNTERS if name in known]
        delivery.write(shown, [summary.name for summary in shown])


_LOOK_EVERY_S = 0.5  # seconds between two looks
_REST = 4  # times as long as the last look took: looking takes a fifth of the time at most
_FRESH = 2.0  # seconds after a change in which another one may have left the same time


def follow(
    connect: Callable[[], Session],
    paths: Sequence[str],
    options: Options,
    out: TextIO,
    report: Callable[[str], None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Print kernels as logduration logs them, each when it is first seen; returns at Ctrl-C.

    Args:
        connect: opens the files as they are now.
        paths: the inputs, to see whether they changed.
        options: options of the analysis.
        out: where lines go.
        report: called with the reason why files cannot be read, at each look.
        wait: lets some seconds pass.

    Raises:
        UsageError: an option makes no sense.
        OutputError: a file of its own cannot be written.
    """
    from rocpd.summary.kernels.op_trace import KernelLog
    from rocpd.summary.reading import Reading
    from rocpd.view.desk import Stamp, stamps_of

    log, shown = KernelLog(), as_data(out)
    before: Stamp | None = None
    with until_ctrl_c():
        while True:
            start = time.monotonic()
            now = tuple(stamps_of(paths))
            if now != before or any(time.time() - file.written_s < _FRESH for _, file in now):
                try:
                    with connect() as session:
                        for text in log.new_lines(Reading(session, options)):
                            shown.write(text)
                    before = now
                except (UsageError, OutputError):
                    raise
                except RocpdError as error:  # not there yet, half-written, locked, without what filters let pass
                    report(f"{error.message}; waiting")
                out.flush()
            wait(max(_LOOK_EVERY_S, _REST * (time.monotonic() - start)))


_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "": 10**6}
_TIME = re.compile(r"([+-]?)(\d*\.?\d+|\d+\.)\s*(ns|us|ms|s|sec|)")


@frozen
class RaptorOptions:
    """The tables, the part of the trace, and the names of kernels."""

    categorize: bool = plain(False, "Show time by category.", flags=("-c", "--categorize"))
    top: bool = plain(
        False, "Show kernels after the same others.", flags=("-k", "--top"), hidden_flags=("--kernelseq",)
    )
    variability: bool = plain(False, "Show the time above the shortest instances.")
    op_trace: bool = plain(False, "Show each operation.")
    prekernel_seq: int = declare(
        2, "Kernels before that tell one apart; 0: none.", "N", hidden_flags=("--kernelseq-len",), least=0
    )
    roi_start: str | None = plain(None, "From: 12.5 (ms), +3us, -1s (from the end), 40%, or a kernel.", "TIME")
    roi_end: str | None = plain(None, "To, in the same forms.", "TIME")
    auto_roi: bool = plain(
        False, "From the first to the last run of the hottest kernel.", hidden_flags=("--auto-roi-top",)
    )
    gpu_id: str | None = plain(None, "Only this agent.", "ID")
    categories: Path | None = plain(None, "JSON of categories, as RAPTOR has it.", "FILE")
    limit: int = plain(0, "Rows of a table; 0 shows all.", "N", least=0)


def raptor(inputs: Inputs, asked: RaptorOptions) -> None:
    """Show RAPTOR's tables, for its command lines.

    The tables and their columns are called as RAPTOR's; docs/from-rpd.md says where the numbers differ, and why. Any
    input is taken, not only .rpd files.

    Examples:
        rocpd raptor mytrace.rpd.gz --categorize --top
        rocpd raptor mytrace.rpd.gz --categorize --top --auto-roi
        rocpd raptor mytrace.rpd.gz --op-trace --roi-start 10ms --roi-end 20ms
    """
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window

    with whole(inputs).connect() as every:
        session = every.where(Filters(agents=asked.gpu_id)) if asked.gpu_id else every
        edges = edge(session, asked.roi_start), edge(session, asked.roi_end)
        window = Window(*edges, auto_roi=asked.auto_roi)
        _show_tables(session.within(window) if window else session, asked)


def edge(session: Session, text: str | None) -> str | None:
    """Return an edge of the region of interest as an edge of a window.

    Raises:
        UsageError: it is no time, and no kernel matches.
    """
    if text is None or text.endswith("%"):
        return text
    if match := _TIME.fullmatch(text):
        sign, number, unit = match.groups()
        return f"{sign or '+'}{round(float(number) * _UNITS[unit])}ns"
    from rocpd.federate.select.window import Window
    from rocpd.summary.reading import Reading

    start, _ = Reading(session.within(Window(kernel=text))).line()
    return f"+{start}ns"


_RAPTORS = ("raptor-categories", "raptor-top", "raptor-variability")


def _show_tables(session: Session, asked: RaptorOptions) -> None:
    from rocpd.summary.kernels.op_trace import raptor as trace_of
    from rocpd.summary.kernels.variability import raptor as tables_of
    from rocpd.summary.reading import Reading

    is_asked = asked.categorize, asked.top, asked.variability
    names = list(compress(_RAPTORS, is_asked)) or ([] if asked.op_trace else list(_RAPTORS[:2]))
    reading = Reading(session, Options(categories=asked.categories, sequence=asked.prekernel_seq))
    if names:
        shown = (table for table in tables_of(reading) if table.name in names)
        Delivery(None, None, limit=asked.limit).write(shown, names)
    if asked.op_trace:
        with standard_output() as out:
            for text in trace_of(reading):
                out.write(text)
