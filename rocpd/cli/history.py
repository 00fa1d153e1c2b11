"""`rocpd history`: the history of a job over many runs, and the gate that compares a new run with it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from rocpd.base.amount import amount
from rocpd.base.errors import Exit, UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option, options_of
from rocpd.base.visible import as_data
from rocpd.cli import tables
from rocpd.cli.analyses import Delivery
from rocpd.cli.diagnostics import note, progress, report_written
from rocpd.cli.diff import Gate, show
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.compare.options import STEP, DiffOptions, metric_of
from rocpd.table import find_format, format_names

if TYPE_CHECKING:
    from rocpd.compare.run_profile import RunProfile
    from rocpd.history.history import JobHistory
    from rocpd.session import Session

_REPORT, _SHOWN = "history.html", ("changes", "runs", "noise")


class Redaction(enum.StrEnum):
    """How much entries leave out."""

    NONE = "none"
    SHARE = "share"


def _formats() -> list[str]:
    return format_names(of_analyses=True)


def _verbs() -> list[str]:
    return [verb for verb in _VERBS if verb]


@frozen
class HistoryInputs:
    """The verb, the store and the runs."""

    HEADING: ClassVar = Heading.INPUTS

    words: Annotated[
        tuple[str, ...],
        Option(
            "What to do, none: show; the store, a folder; runs to add or check, or tables to show.",
            "[add|check|report|export] STORE [RUN|TABLE]...",
            is_positional=True,
            complete=_verbs,
            is_plain=True,
        ),
    ] = ()
    skip_bad: Annotated[bool, Option("Leave out files that cannot be read, and report them.")] = False


@frozen
class AddOptions:
    """Labels and dates of runs that are added."""

    label: Annotated[
        tuple[str, ...],
        Option("add: say this of the runs, such as commit=9f2c1; repeatable.", "NAME=VALUE", is_plain=True),
    ] = ()
    date: Annotated[
        str | None,
        Option(
            "add: when they ran, 2026-11-12 or 2026-11-12T03:00:00+01:00, else as recorded.",
            "DATE",
        ),
    ] = None
    redact: Annotated[
        Redaction, Option("add: share leaves out where and by whom they ran; machines become hashes.")
    ] = Redaction.NONE


@frozen
class AskedOfHistory:
    """The part of a history that is shown."""

    job: Annotated[
        int, Option("Which job of the store, from 1; the first one ran last.", "N", least=1, is_plain=True)
    ] = 1
    kernel: Annotated[str | None, Option("Only the time of kernels that match.", "REGEX", is_plain=True)] = None
    by: Annotated[str, Option("Runs of one host, gpu or value of a label may lie apart from others.", "NAME")] = "host"
    least: Annotated[float, Option("Leave out changes of less than this.", "PERCENT", least=0, most=1e3)] = 1.0
    sql: Annotated[
        str | None, Option("Ask SQL of the tables changes, runs, series, noise and labels.", "SQL", is_plain=True)
    ] = None
    allow_unclear: Annotated[bool, Option("check: end with 0 where the verdict is unclear.")] = False
    format: Annotated[str, tables.format_option("Format, else by the ending of -o:", _formats)] = ""
    limit: Annotated[
        int, Option("Rows per table on the console; 0 shows all.", heading=Heading.OUTPUT, least=0, is_plain=True)
    ] = 20


@frozen
class _Asked:
    """The groups of options, and the words after the verb."""

    store: Path
    words: tuple[str, ...]
    inputs: HistoryInputs
    adding: AddOptions
    comparing: DiffOptions
    shown: AskedOfHistory
    output: TableOptions
    execution: Execution

    def runs(self, has_whole: bool = False) -> list[RunProfile]:
        """Measure the runs that are named; `has_whole` as in `DiffMetric`."""
        from rocpd.compare.run import Comparing

        if not self.words:
            raise UsageError("no run is named", "rocpd history add STORE RUN...; rocpd history check STORE RUN...")
        reading = partial(progress, "history", "ranks")
        metric = replace(metric_of(self.comparing.metric), has_whole=has_whole)
        self.comparing.pattern()
        return Comparing(self.comparing, metric, self._open, reading, on_note=note).runs(self.words)

    def _open(self, paths: Sequence[str]) -> AbstractContextManager[Session]:
        inputs = Inputs(tuple(paths), skip_bad=self.inputs.skip_bad)
        return SelectionOptions().connect(inputs, self.execution, has_analyses=True)

    def history(self) -> JobHistory:
        """Open the history."""
        from rocpd.history.history import HistoryOptions, open_history

        metrics = () if self.comparing.metric == STEP else (self.comparing.metric,)
        metrics = (f"kernel:{self.shown.kernel}",) if self.shown.kernel is not None else metrics
        return open_history(self.store, HistoryOptions(self.shown.job, metrics, self.shown.by, self.shown.least / 100))


def history(
    inputs: HistoryInputs,
    adding: AddOptions,
    shown: AskedOfHistory,
    comparing: DiffOptions,
    output: TableOptions,
    execution: Execution,
) -> int:
    """Say since when a job is as fast as it is, of many runs.

    The store is a folder of small files, one or two a run, that many jobs may write at once. `add` puts runs into it;
    without a word before the store, what changed and when is said; `check` compares runs with the newest level, and
    ends as `rocpd diff` does: 0 same or faster, 1 slower, 4 unclear. `report` and `export` write files.

    Examples:
        rocpd history add store/ job/ --label commit=9f2c1
        rocpd history store/
        rocpd history store/ series --kernel gemm --format csv
        rocpd history check store/ job/ --format json
        rocpd history report store/ -o history.html
        rocpd history export store/ -o metrics.prom
        rocpd history store/ --sql "select date, value_ns from runs"
    """
    verb, *words = inputs.words if inputs.words and inputs.words[0] in _VERBS else ("", *inputs.words)
    if not words:
        raise UsageError("no store is named", "rocpd history STORE; rocpd history add STORE RUN...")
    function, reads = _VERBS[verb]
    _refuse_unread(verb, reads, (inputs, adding, shown, comparing, output, execution))
    store = Path(words[0])
    return function(_Asked(store, tuple(words[1:]), inputs, adding, comparing, shown, output, execution))


def _refuse_unread(verb: str, reads: frozenset[str], groups: Sequence[Any]) -> None:
    """Refuse options that what is done does not read.

    Raises:
        UsageError: one of them is given.
    """
    for group in groups:
        kind: type = type(group)
        for option in options_of(kind):
            if option.name not in reads and getattr(group, option.name) != option.default:
                what = f"history {verb}".rstrip()
                raise UsageError(f"{option.flag}: `rocpd {what}` does not read it", "rocpd history --help")


def _add(asked: _Asked) -> int:
    from rocpd.history import store
    from rocpd.history.store import date_of, labels_of, redacted

    labels, date = labels_of(asked.adding.label), asked.adding.date
    at = None if date is None else date_of(date)
    runs = asked.runs(has_whole=True)
    if asked.adding.redact is Redaction.SHARE:
        runs = [redacted(run) for run in runs]
    news = store.add(asked.store, runs, labels, at)
    known = f", {amount(news.count(False), 'run')} known" if False in news else ""
    note(f"added {amount(news.count(True), 'run')} to {asked.store}{known}")
    return Exit.GOOD


def _check(asked: _Asked) -> int:
    from rocpd.history.history import HistoryOptions, history_of

    runs = asked.runs()
    found = history_of(asked.store, runs[0], HistoryOptions(asked.shown.job, by=asked.shown.by))
    comparison = found.against(runs, asked.comparing)
    return show(comparison, Gate(asked.shown.allow_unclear, format=asked.shown.format), asked.output)


def _show(asked: _Asked) -> int:
    from rocpd.history.tables import OF_JOB

    found = asked.history()
    if asked.shown.sql is not None:
        form, path = tables.format_and_path(asked.shown.format, asked.output)
        rows = found.sql(asked.shown.sql)
        with tables.open_output(path, asked.output) as out:
            tables.write_rows(rows.columns, iter(rows), out, form, asked.shown.limit)
        return Exit.GOOD
    form = find_format(
        asked.shown.format or tables.format_by_ending(asked.output.name, tables.endings()), of_analyses=True
    )
    chosen = asked.words or (OF_JOB if form else _SHOWN)
    for name in chosen:
        if name not in OF_JOB:
            raise UsageError(f"{name}: no table of a history", f"one of {', '.join(OF_JOB)}")
    is_filed = asked.output.is_asked or (form is not None and form.is_columnar)
    target = asked.output.destination([tables.ending_of(form)]) if is_filed else None
    Delivery(form, target, asked.output, asked.shown.limit).write(list(found.tables(chosen)), chosen)
    return Exit.GOOD


def _report(asked: _Asked) -> int:
    from rocpd.report.history import write
    from rocpd.report.writers import REPORT_FORMATS

    _refuse_words(asked)
    is_named = asked.output.name is not None or asked.output.is_asked
    path = asked.output.destination(REPORT_FORMATS).path() if is_named else Path(_REPORT)
    write(asked.history(), path, asked.output.force)
    report_written(path)
    return Exit.GOOD


def _export(asked: _Asked) -> int:
    from rocpd.history.export import EXPORTS

    _refuse_words(asked)
    name = asked.output.name or ""
    ending = next((ending for ending in EXPORTS if name.endswith(ending)), next(iter(EXPORTS)))
    path = asked.output.destination(list(EXPORTS)).path(ending) if asked.output.is_asked else None
    found = asked.history()
    with tables.open_output(path, asked.output) as out:
        as_data(out).writelines(EXPORTS[ending](found))
    return Exit.GOOD


def _refuse_words(asked: _Asked) -> None:
    if asked.words:
        raise UsageError(f"{asked.words[0]}: one store alone is read here", "rocpd history --help")


_OUTPUT = frozenset(option.name for option in options_of(TableOptions))
_READING = frozenset({"words", "skip_bad", "metric", "step_marker", "categories", "everything"})
_READING |= {option.name for option in options_of(Execution)}
_SHOWING = _OUTPUT | {"words", "metric", "kernel", "job", "by", "least"}
_VERBS: Mapping[str, tuple[Callable[[_Asked], int], frozenset[str]]] = {
    "": (_show, _SHOWING | {"sql", "format", "limit"}),
    "add": (_add, _READING | {"label", "date", "redact"}),
    "check": (
        _check,
        _READING | _OUTPUT | {"job", "by", "allow_unclear", "format", "margin", "run_noise", "least_score", "match"},
    ),
    "report": (_report, _SHOWING),
    "export": (_export, _SHOWING),
}
"""Word in front of the store -> what is done, and the options that it reads."""
