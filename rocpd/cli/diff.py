"""`rocpd diff`: whether one job is slower than another, and why; `rocpd history`: the same for many runs."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import Exit, UsageError, amount, frozen
from rocpd.base.option import Heading, declare, field_of, options_of, plain
from rocpd.base.stages import InTurn
from rocpd.base.texts import as_data
from rocpd.cli import tables
from rocpd.cli.diagnostics import ReaderGoneError, note, progress, report_written
from rocpd.cli.options import Execution, Inputs, JobChoice, PlaceOptions, SpanOptions, TableOptions, whole
from rocpd.cli.tables import Delivery
from rocpd.cli.terminal import screen_of
from rocpd.compare.options import STEP, DiffOptions

if TYPE_CHECKING:
    from rocpd.compare.comparison import Comparison
    from rocpd.compare.run import Comparing
    from rocpd.compare.run_profile import RunProfile
    from rocpd.history.history import JobHistory


@frozen
class DiffInputs:
    """The two sides."""

    HEADING: ClassVar = Heading.INPUTS

    words: tuple[str, ...] = plain(
        (),
        "Base and other side, each a file, folder or package; the base may be one of --save-baseline.",
        "[BASE] [NEW]",
        is_positional=True,
    )
    base: tuple[str, ...] = plain(
        (), "Runs of the base, several after one flag, or a file of --save-baseline.", "RUN..."
    )
    new: tuple[str, ...] = plain((), "Runs of the other side.", "RUN...")
    history: Path | None = plain(
        None, "The base is the newest level of this history, and runs deviate as they do there.", "STORE"
    )
    against: str | None = plain(
        None, "Steps or ranks of one job to compare with: numbers, or others (the default).", "LIST"
    )
    skip_bad: bool = declare(False, "Leave out files that cannot be read, and report them.")

    @property
    def is_one_job(self) -> bool:
        """Whether one job is named: two words are two sides, unless --against says otherwise."""
        return not (self.base or self.new or self.history) and (len(self.words) != 2 or self.against is not None)

    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the inputs of the base and of the other side.

        Raises:
            UsageError: there are not exactly two.
        """
        base, left = (self.base, self.words) if self.base else (self.words[:1], self.words[1:])
        new, left = (self.new, left) if self.new else (left[:1], left[1:])
        if not base or not new or left:
            count = amount(len(self.words) + len(self.base) + len(self.new), "input")
            several = "several runs a side: --base a1 a2 --new b1 b2; within a job: --step N, --rank N, --host NAME"
            raise UsageError(f"{count}: not a base and another side", f"rocpd diff BASE NEW; {several}")
        return base, new


@frozen
class DiffSelection(SpanOptions, PlaceOptions):
    """The compared part of both sides; within one job, the steps or ranks to compare with its others."""

    step: str | None = plain(
        None, "Of one job: compare these steps with --against. Of two sides: only these steps.", "LIST"
    )
    rank: str | None = plain(
        None,
        "Of one job: compare these ranks with --against. Of two sides: only these ranks.",
        "LIST",
        heading=Heading.FILTERS,
        complete_from="ranks",
    )

    def of(self, job: JobChoice, *, is_within: bool) -> JobChoice:
        """Return a job with this selection; `Comparing` selects steps, and within one job ranks, by itself."""
        chosen = {field.name: getattr(self, field.name) for field in fields(DiffSelection)} | {"step": None}
        if is_within:
            chosen |= {"rank": None, "host": self.host if self.step is not None else None}
        return replace(job, **chosen)

    @property
    def is_within(self) -> bool:
        """Whether steps, ranks or hosts are named."""
        return any(each is not None for each in (self.step, self.rank, self.host))

    @property
    def text(self) -> str:
        """The selection as words of a command; empty: everything."""
        values = [(field, getattr(self, field.name)) for field in fields(DiffSelection)]
        given = ((field.name.replace("_", "-"), value) for field, value in values if value != field.default)
        return " ".join(f"--{name} {value}" for name, value in given)


@frozen
class Gate:
    """The exit code and the file of the base."""

    allow_unclear: bool = declare(False, "End with 0 where the verdict is unclear.")
    save_baseline: Path | None = plain(
        None, "Write the measured values of the runs, and compare nothing.", "FILE", heading=Heading.OUTPUT
    )
    accept: bool = declare(False, "Make the other side the base, in the file of the base; needs --reason.")
    reason: str | None = declare(None, "Why a change is accepted.", "TEXT")
    format: str = tables.format_option("Format, else by the ending of -o:", tables.of_analyses)
    json: bool = declare(False, "The same as --format json.", heading=Heading.OUTPUT)
    limit: int | None = declare(
        None,
        "Most rows of a table, 0: all; without it those that explain most on the console, else all.",
        "N",
        least=0,
        heading=Heading.OUTPUT,
    )


@frozen
class DiffChoice(Execution, TableOptions, DiffSelection, Gate, DiffOptions, DiffInputs):
    """All options of a comparison."""


def diff(asked: DiffChoice) -> int:
    """Say whether a job is slower than another, and where.

    A side is one run or several. With one run a side most differences are unclear, because runs differ by themselves.
    Ends with 0 where the verdict is same or faster, 1 slower, 4 unclear; 2 is wrong usage, 3 any failure.
    `rocpd schema diff-kernels` explains the columns.

    Examples:
        rocpd diff before/ after/
        rocpd diff --base a1 a2 a3 --new b1 b2 b3
        rocpd diff job/ --step 16 --against 15
        rocpd diff job/ --host node3
        rocpd diff --save-baseline main.json --base run1 run2 run3
        rocpd diff --base main.json --new run4 --format md -o comment.md
        rocpd diff after/ --history store/
    """
    from rocpd.compare.comparison import compare
    from rocpd.compare.run import Comparing, jobs_among

    asked.check()
    is_within = _is_within(asked)
    job = asked.of(whole(Inputs(skip_bad=asked.skip_bad), asked), is_within=is_within)
    steps, text = (None, "") if is_within else (asked.step, asked.text)
    named = [*asked.base, *asked.words, *asked.new]
    with progress(f"diff of {amount(len(named), 'input')}", "") as report:
        comparing = Comparing(asked, job.open_side, InTurn(report, jobs_among(named)), steps, text, note)
        if asked.save_baseline:
            _save(comparing, named, asked.save_baseline, asked)
            return Exit.GOOD
        if is_within:
            comparison = _within(comparing, asked)
        elif asked.history:
            comparison = _with_history(comparing, asked)
        else:
            base, new = asked.sides()
            _check_acceptance(asked, base)
            runs = comparing.runs(new)
            comparison = compare(comparing.runs(base), runs, asked)
            if asked.accept:
                _accept(Path(base[0]), comparison, runs, asked.reason or "")
    return show(comparison, asked, asked)


def _is_within(asked: DiffChoice) -> bool:
    """Whether steps or ranks of one job are compared.

    Raises:
        UsageError: an option does not apply to steps or ranks of one job, or --against is given for two jobs.
    """
    is_within = asked.is_one_job and asked.is_within and not asked.save_baseline
    if asked.against is not None and not is_within:
        hint = "rocpd diff JOB --step 16 --against 15"
        raise UsageError("--against needs one job, and --step, --rank or --host", hint)
    if is_within and asked.step is not None and asked.rank is not None:
        raise UsageError("--step and --rank: only one of them can be compared", "rocpd diff JOB --step 16")
    if is_within and asked.rank is not None and asked.host is not None:
        raise UsageError("--rank and --host: only one of them can be compared", "rocpd diff JOB --rank 4-7")
    if is_within and asked.step is None and asked.metric != STEP:
        raise UsageError(
            "--metric: ranks are compared by their time without communication", "--step takes other metrics"
        )
    if is_within and asked.accept:
        raise UsageError("--accept changes a file of --save-baseline; steps and ranks of one job have none")
    return is_within


def _within(comparing: Comparing, asked: DiffChoice) -> Comparison:
    """Compare steps or ranks of one job."""
    against = asked.against or "others"
    if asked.step is not None:
        return comparing.compare_steps(asked.words, asked.step, against)
    return comparing.compare_ranks(asked.words, asked.rank, asked.host, against)


def _with_history(comparing: Comparing, asked: DiffChoice) -> Comparison:
    """Compare runs with the newest level of a history.

    Raises:
        UsageError: a base is named too, or no run is named.
    """
    from rocpd.history.history import history_of

    named = (*asked.words, *asked.new)
    if asked.base or asked.accept or not named or asked.history is None:
        raise UsageError("--history is the base, and runs are compared with it", "rocpd diff NEW --history STORE")
    runs = comparing.runs(named)
    return history_of(asked.history, runs[0]).against(runs, asked)


def show(comparison: Comparison, gate: Gate, output: TableOptions) -> Exit:
    """Write a comparison and return its exit code, even if the reader of stdout has gone away."""
    code = _code(comparison, gate)
    try:
        _write(comparison, gate, output)
    except ReaderGoneError as gone:
        gone.code = code
        raise
    return code


def _code(comparison: Comparison, gate: Gate) -> Exit:
    from rocpd.compare.decision import ChangeVerdict

    if gate.accept:
        return Exit.GOOD
    if comparison.verdict is ChangeVerdict.SLOWER:
        return Exit.FAILED
    return Exit.UNCLEAR if comparison.verdict is ChangeVerdict.UNCLEAR and not gate.allow_unclear else Exit.GOOD


def _write(comparison: Comparison, gate: Gate, output: TableOptions) -> None:
    """Write a comparison in the format asked for."""
    from rocpd.compare.tables import TABLES, document_of, sheets_of, tables_of, write_text

    form, path = tables.format_and_path(tables.JSON if gate.json else gate.format, output, of_analyses=True)
    if form and not form.is_page and form.name != tables.JSON:
        Delivery.of(form, output, gate.limit).write(tables_of(comparison), list(TABLES))
        return
    with tables.open_output(path, output) as out:
        if form is None:
            write_text(comparison, out, screen_of(out), gate.limit)
        elif form.is_page:
            form.write_page(sheets_of(comparison, gate.limit), as_data(out))
        else:
            json.dump(document_of(comparison), out, indent=1)
            out.write("\n")


def _save(comparing: Comparing, named: Sequence[str], path: Path, output: TableOptions) -> None:
    """Write a baseline of all named runs.

    Raises:
        UsageError: no run is named.
    """
    from rocpd.compare.baseline import Baseline

    if not named:
        raise UsageError("--save-baseline: no runs are named", "rocpd diff --save-baseline main.json --base run1 run2")
    runs = comparing.runs(named)
    with tables.open_output(path, output) as out:
        out.write(Baseline(tuple(runs)).text())


def _check_acceptance(gate: Gate, base: Sequence[str]) -> None:
    """Check early whether the change can be accepted.

    Raises:
        UsageError: the base is not a file of `--save-baseline`, or no reason is given.
    """
    if not gate.accept:
        if gate.reason is not None:
            raise UsageError("--reason says why a change is accepted: it needs --accept")
        return
    if not gate.reason:
        raise UsageError("--accept needs a reason", '--reason "larger model"')
    from rocpd.compare.baseline import is_baseline

    if len(base) != 1 or not is_baseline(base[0]):
        raise UsageError("--accept changes a file of --save-baseline, and the base is a recording", "--base main.json")


def _accept(path: Path, comparison: Comparison, runs: Sequence[RunProfile], reason: str) -> None:
    """Make the other side the base, and record the reason."""
    from datetime import UTC, datetime

    from rocpd.base.evidence import renewing
    from rocpd.compare.baseline import accepted, load_baseline

    text, *_ = (finding.text for finding in comparison.findings)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"at": at, "reason": reason, "verdict": comparison.verdict.value, "text": text, "runs": comparison.new}
    renewing(path)
    with tables.open_output(path, TableOptions(force=True)) as out:
        out.write(accepted(load_baseline(path), runs, record).text())


_REPORT, _SHOWN = "history.html", ("changes", "runs", "noise")


class Redaction(enum.StrEnum):
    """How much is left out of entries."""

    NONE = "none"
    SHARE = "share"


@frozen
class HistoryInputs:
    """The verb, the store and the runs."""

    HEADING: ClassVar = Heading.INPUTS

    words: tuple[str, ...] = plain(
        (),
        "What to do, none: show; the store, a folder; runs to add or check, or tables to show.",
        "[add|check|report|export] STORE [RUN|TABLE]...",
        is_positional=True,
        complete=lambda: filter(None, _VERBS),
    )
    skip_bad: bool = declare(False, "Leave out files that cannot be read, and report them.")


@frozen
class AddOptions:
    """Labels and dates of added runs."""

    label: tuple[str, ...] = plain((), "add: say this of the runs, such as commit=9f2c1; repeatable.", "NAME=VALUE")
    date: str | None = declare(
        None, "add: when they ran, 2026-11-12 or 2026-11-12T03:00:00+01:00, else as recorded.", "DATE"
    )
    redact: Redaction = declare(
        Redaction.NONE, "add: share leaves out where and by whom they ran; machines become hashes."
    )


@frozen
class AskedOfHistory:
    """The shown part of a history."""

    job: int = plain(1, "Which job of the store, from 1; the first one ran last.", "N", least=1)
    kernel: str | None = plain(None, "Only the time of kernels that match.", "REGEX")
    by: str = declare("host", "Runs of one host, gpu or value of a label may lie apart from others.", "NAME")
    least: float = declare(1.0, "Leave out changes of less than this.", "PERCENT", least=0, most=1e3)
    sql: str | None = plain(None, "Ask SQL of the tables changes, runs, series, noise and labels.", "SQL")
    allow_unclear: bool = declare(False, "check: end with 0 where the verdict is unclear.")
    format: str = tables.format_option("Format, else by the ending of -o:", tables.of_analyses)
    limit: int | None = field_of(None, tables.LIMIT)


@frozen
class HistoryChoice(Execution, TableOptions, DiffOptions, AskedOfHistory, AddOptions, HistoryInputs):
    """All options; after the verb is taken away, `words` has the store and the runs or tables."""

    @property
    def store(self) -> Path:
        """The folder of the history."""
        return Path(self.words[0])

    def runs(self) -> list[RunProfile]:
        """Measure the named runs."""
        from rocpd.compare.run import Comparing, jobs_among

        _, *runs = self.words
        if not runs:
            raise UsageError("no run is named", "rocpd history add STORE RUN...; rocpd history check STORE RUN...")
        self.check()
        job = whole(Inputs(skip_bad=self.skip_bad), self)
        with progress("history", "") as report:
            return Comparing(self, job.open_side, InTurn(report, jobs_among(runs)), on_note=note).runs(runs)

    def history(self) -> JobHistory:
        """Open the history."""
        from rocpd.history.history import HistoryOptions, open_history

        metrics = () if self.metric == STEP else (self.metric,)
        metrics = (f"kernel:{self.kernel}",) if self.kernel is not None else metrics
        return open_history(self.store, HistoryOptions(self.job, metrics, self.by, self.least / 100))


def history(asked: HistoryChoice) -> int:
    """Say since when a job is as fast as it is, of many runs.

    The store is a folder of small files, one or two per run, that many jobs may write at once. `add` puts runs into it;
    without a word before the store, changes are shown with their times; `check` compares runs with the newest level,
    and ends as `rocpd diff` does: 0 same or faster, 1 slower, 4 unclear. `report` and `export` write files.

    Examples:
        rocpd history add store/ job/ --label commit=9f2c1
        rocpd history store/
        rocpd history store/ series --kernel gemm --format csv
        rocpd history check store/ job/ --format json
        rocpd history report store/ -o history.html
        rocpd history export store/ -o metrics.prom
        rocpd history store/ --sql "select date, value_ns from runs"
    """
    verb, *words = asked.words if asked.words and asked.words[0] in _VERBS else ("", *asked.words)
    if not words:
        raise UsageError("no store is named", "rocpd history STORE; rocpd history add STORE RUN...")
    function, reads = _VERBS[verb]
    for option in options_of(HistoryChoice):
        if option.name not in reads and getattr(asked, option.name) != option.default:
            what = f"history {verb}".rstrip()
            raise UsageError(f"{option.flag}: `rocpd {what}` does not read it", "rocpd history --help")
    return function(replace(asked, words=tuple(words)))


def _add(asked: HistoryChoice) -> int:
    from rocpd.history import store
    from rocpd.history.store import date_of, labels_of, redacted

    labels, date = labels_of(asked.label), asked.date
    at = None if date is None else date_of(date)
    runs = replace(asked, has_whole=True).runs()
    if asked.redact is Redaction.SHARE:
        runs = [redacted(run) for run in runs]
    news = store.add(asked.store, runs, labels, at)
    known = f", {amount(news.count(False), 'run')} known" if False in news else ""
    note(f"added {amount(news.count(True), 'run')} to {asked.store}{known}")
    return Exit.GOOD


def _check(asked: HistoryChoice) -> int:
    from rocpd.history.history import HistoryOptions, history_of

    runs = asked.runs()
    job_history = history_of(asked.store, runs[0], HistoryOptions(asked.job, by=asked.by))
    return show(job_history.against(runs, asked), Gate(asked.allow_unclear, format=asked.format), asked)


def _show_history(asked: HistoryChoice) -> int:
    from rocpd.history.history import OF_JOB

    job_history = asked.history()
    if asked.sql is not None:
        form, path = tables.format_and_path(asked.format, asked)
        rows = job_history.sql(asked.sql)
        with tables.open_output(path, asked) as out:
            tables.write_rows(rows.columns, iter(rows), out, form, tables.most_rows(asked.limit, form is None))
        return Exit.GOOD
    form, _ = tables.format_and_path(asked.format, asked, of_analyses=True)
    chosen = asked.words[1:] or (OF_JOB if form else _SHOWN)
    for name in chosen:
        if name not in OF_JOB:
            raise UsageError(f"{name}: no table of a history", f"one of {', '.join(OF_JOB)}")
    Delivery.of(form, asked, asked.limit).write(list(job_history.tables(chosen)), chosen)
    return Exit.GOOD


def _report(asked: HistoryChoice) -> int:
    from rocpd.report.history import write
    from rocpd.report.writers import REPORT_FORMATS

    _refuse_words(asked)
    is_named = asked.name is not None or asked.is_asked
    path = asked.destination(REPORT_FORMATS).path() if is_named else Path(_REPORT)
    write(asked.history(), path, asked.force)
    report_written(path)
    return Exit.GOOD


def _export(asked: HistoryChoice) -> int:
    from rocpd.history.export import EXPORTS

    _refuse_words(asked)
    name = asked.name or ""
    ending = next((ending for ending in EXPORTS if name.endswith(ending)), next(iter(EXPORTS)))
    path = asked.destination(list(EXPORTS)).path(ending) if asked.is_asked else None
    job_history = asked.history()
    with tables.open_output(path, asked) as out:
        as_data(out).writelines(EXPORTS[ending](job_history))
    return Exit.GOOD


def _refuse_words(asked: HistoryChoice) -> None:
    if asked.words[1:]:
        raise UsageError(f"{asked.words[1]}: one store alone is read here", "rocpd history --help")


_OUTPUT = frozenset(option.name for option in options_of(TableOptions))
_READING = frozenset({"words", "skip_bad", "metric", "step_marker", "categories", "everything"})
_READING |= {option.name for option in options_of(Execution)}
_SHOWING = _OUTPUT | {"words", "metric", "kernel", "job", "by", "least"}
_VERBS: Mapping[str, tuple[Callable[[HistoryChoice], int], frozenset[str]]] = {
    "": (_show_history, _SHOWING | {"sql", "format", "limit"}),
    "add": (_add, _READING | {"label", "date", "redact"}),
    "check": (
        _check,
        _READING | _OUTPUT | {"job", "by", "allow_unclear", "format", "margin", "run_noise", "least_score", "match"},
    ),
    "report": (_report, _SHOWING),
    "export": (_export, _SHOWING),
}
"""Word before the store -> its function, and the options that it reads."""
