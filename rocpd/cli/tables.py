"""The place and the format of tables. Text comes from `rocpd.table`.

Tables of analyses go to stdout, on one page, or to a file each; on a terminal their findings have a sign and a colour
for the verdict, and lines are wrapped between words.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from rocpd.base import RocpdError, Row, UsageError, amount, entries, frozen
from rocpd.base.boundary import as_far_as_made
from rocpd.base.option import Heading, Option, plain
from rocpd.base.output import Destination, check_free, complete_or_nothing
from rocpd.base.texts import as_data, visible
from rocpd.cli.diagnostics import clear_bars, job_text, note, progress, report_written, standard_output
from rocpd.cli.options import OutputOptions, TableOptions
from rocpd.cli.terminal import page, screen_of
from rocpd.summary.findings import JOB, Finding, Verdict
from rocpd.summary.registry import TextForm
from rocpd.table import CONSOLE, Sheet, TableFormat, find_format, format_names, known_table_formats
from rocpd.table.palette import GREEN, ORANGE, RED, SKY, Colour, Screen

if TYPE_CHECKING:
    from rocpd.facts.rank import Options
    from rocpd.session import Session
    from rocpd.summary.result import Summary
    from rocpd.summary.summarize import SummaryOptions


_TEXT = ".txt"  # ending of files in the format of the console

JSON = "json"

TEXT_OR_JSON = {CONSOLE: _TEXT, JSON: ".json"}
"""Forms of answers that are not tables -> the ending of their files."""
_FEW = 6  # tables named in the note on cut rows


def format_option(
    help: str = "Format of the rows, else by the ending of -o:",
    names: Callable[[], Iterable[str]] = format_names,
    listing: Callable[[], str] | None = None,
) -> str:
    """Return the field of a command's option `--format`; its value is empty when the option is not given.

    Args:
        help: ends with a colon; the names or their listing follow it.
        names: returns the names of the formats.
        listing: returns the names for help.
    """
    listing = listing or (lambda: ", ".join(names()))
    flags = ("-f", "--format")
    return plain("", help, "FORMAT", flags, Heading.OUTPUT, complete=names, listing=listing)


LIMIT = Option(
    "Most rows of a table, 0: all; without it 20 on the console, else all.",
    "N",
    heading=Heading.OUTPUT,
    least=0,
    is_plain=True,
)
"""The option `--limit` of commands that write tables of analyses."""


def most_rows(limit: int | None, is_for_people: bool, usual: int = 20) -> int:
    """Return the largest number of rows of a table for a value of `--limit`; 0: all."""
    return limit if limit is not None else usual if is_for_people else 0


def of_analyses() -> list[str]:
    """Return the formats of tables of analyses."""
    return format_names(of_analyses=True)


def endings() -> dict[str, str]:
    """Return ending -> format."""
    return {_TEXT: CONSOLE, **{form.ending: name for name, form in known_table_formats().items()}}


def ending_of(form: TableFormat | None) -> str:
    """Return the ending of files of a format; None stands for the console."""
    return form.ending if form else _TEXT


def format_by_ending(name: str | None, known: Mapping[str, str]) -> str:
    """Return the format for the ending of an output's name; the console if none fits.

    >>> format_by_ending("x.a.json", {".json": "json", ".a.json": "a"}), format_by_ending("x", {".json": "json"})
    ('a', 'console')
    """
    fitting = [ending for ending in known if (name or "").endswith(ending)]
    return known[max(fitting, key=len)] if fitting else CONSOLE


def format_and_path(
    name: str, output: OutputOptions, *, of_analyses: bool = False
) -> tuple[TableFormat | None, Path | None]:
    """Return the format, None for the console, and the file, None for stdout, for a value of `--format`.

    Raises:
        UsageError: as `rocpd.table.find_format`.
    """
    form = find_format(name or format_by_ending(output.name, endings()), of_analyses=of_analyses)
    return form, output.path(ending_of(form))


def form_and_path(name: str, output: OutputOptions, forms: Mapping[str, str]) -> tuple[str, Path | None]:
    """Return the form of a text, by `--format` or else by the ending of `-o`, and the file; None: stdout.

    Args:
        name: name of the form, as the user wrote it; empty: not given.
        output: the place of the text.
        forms: name -> ending of its files.

    Raises:
        UsageError: the form is unknown.
    """
    form = name.lower() or format_by_ending(output.name, {ending: known for known, ending in forms.items()})
    if form not in forms:
        raise UsageError(f"--format {form}: unknown", f"one of {', '.join(forms)}")
    return form, output.path(forms[form])


@contextlib.contextmanager
def open_output(path: Path | None, output: TableOptions) -> Iterator[TextIO]:
    """Yield stdout, or a file that appears under `path` when the block ends without an error."""
    if path is None:
        with standard_output(), page(output.color, is_paged=not output.no_pager) as out:
            yield out
        return
    with (
        complete_or_nothing(path, output.force) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out,
    ):
        yield out
    report_written(path)


def write_answer(answer: object, lines: Iterable[str], out: TextIO, form: str) -> None:
    """Write an answer that is not a table: its document for JSON, else its lines."""
    if form == JSON:
        as_data(out).write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    else:
        out.writelines(f"{visible(line)}\n" for line in lines)


def write_rows(
    columns: Sequence[str], rows: Iterator[Row], out: TextIO, form: TableFormat | None = None, limit: int = 0
) -> bool:
    """Write up to `limit` rows of one table (0: all). Return whether the console cut rows off."""
    from rocpd.table.human import write_console

    if form:
        form.write(columns, islice(rows, limit or None), as_data(out))
        return False
    return write_console(columns, rows, out, limit, screen_of(out))


def write_table(columns: Sequence[str], rows: Iterable[Row], output: TableOptions, format: str = "") -> None:
    """Write one table to the place in `output`; `format`: value of `--format`. Errors as `format_and_path`."""
    form, path = format_and_path(format, output)
    with open_output(path, output) as out:
        write_rows(columns, iter(rows), out, form)


def run_analyses(session: Session, names: Sequence[str], options: Options) -> tuple[Iterator[Summary], list[str]]:
    """Run analyses; return their tables, and the names of the tables as far as they are known before.

    Args:
        session: the job.
        names: analyses or tables; those that lack data are reported, unless all do.
        options: options of the analyses.

    Raises:
        UsageError: a name is unknown.
    """
    from rocpd.summary.reading import planned

    plan = planned(names)
    return _tables(session, plan, options), [table for wanted in plan.values() for table in sorted(wanted)]


def _tables(session: Session, plan: Mapping[str, frozenset[str]], options: Options) -> Iterator[Summary]:
    """Run analyses in one pass over the ranks; each table is written before the next one is built.

    Raises:
        RocpdError: all analyses lack data.
    """
    from rocpd.summary.reading import Reading, run_planned

    is_empty, missing = True, []
    label = next(iter(plan)) if len(plan) == 1 else "summary"
    with progress(f"{label} of {job_text(session)}", "") as report:
        reading = Reading(session, options)
        reading.on_preliminary = _preliminary(len(session.ranks)) if report else None
        for name, answered in run_planned(reading, plan, report):
            try:
                for summary in answered if len(plan) == 1 else as_far_as_made(f"analysis {name}", answered):
                    is_empty = False
                    clear_bars()
                    yield summary
            except UsageError:
                raise
            except RocpdError as error:
                missing.append(error)
                if len(plan) > 1:
                    note(f"{name}: {error.message.removeprefix(f'{name} ').removeprefix(f'{name}: ')}")
    if missing and is_empty:
        raise missing[0] if len(plan) == 1 else RocpdError("no summary has the data that it needs")


def _preliminary(ranks: int) -> Callable[[int, Sequence[Finding]], None]:
    """Return a callback that notes findings from some of the ranks while the others are read."""

    def say(done: int, findings: Sequence[Finding]) -> None:
        for finding in findings:
            note(f"preliminary, from {done} of {ranks} ranks: {finding.text}")

    return say


def amds_tables(session: Session, options: SummaryOptions) -> tuple[list[Summary], list[str]]:
    """Return AMD's tables and their names.

    Raises:
        RocpdError: there are no such tables.
    """
    from rocpd.summary.summarize import summarize

    session.note_runs()
    with progress("summary", "") as report:
        summaries = list(summarize(session, options, report))
    if not summaries:
        raise RocpdError("nothing to summarise: no kernels, copies, allocations or regions in the inputs")
    return summaries, [summary.name for summary in summaries]


@frozen
class TextDelivery:
    """The delivery of a text format of a single analysis.

    Args:
        analysis: its name.
        text: the format.
        target: file; None: stdout.
        output: look of stdout, and whether an existing file is replaced.
    """

    analysis: str
    text: TextForm
    target: Destination | None
    output: TableOptions

    def write(self, session: Session, options: Options) -> None:
        """Write the text as it comes."""
        from rocpd.summary.reading import Reading, stages

        path = self.target.path(f"_{self.analysis}{self.text.ending}") if self.target else None
        texts = entries.load(self.text.home, f"format {self.text.name}")
        with (
            open_output(path, self.output) as out,
            progress(self.analysis, "") as report,
            session.job.reporting(report, stages([self.analysis])),
        ):
            shown = as_data(out)
            for text in texts(Reading(session, options)):
                shown.write(text)


@frozen
class Delivery:
    """The delivery of the tables of analyses.

    Args:
        form: format; None: text for people.
        target: files; None: stdout.
        output: look of stdout, and whether existing files are replaced.
        limit: most rows of a table; 0: all.
        is_split: whether each table gets a file, even where the format puts several on one page.
    """

    form: TableFormat | None
    target: Destination | None
    output: TableOptions = TableOptions()
    limit: int = 0
    is_split: bool = False

    @classmethod
    def of(
        cls, form: TableFormat | None, output: TableOptions, limit: int | None = None, *, is_split: bool = False
    ) -> Delivery:
        """Return the delivery to the place in `output`; some formats go to files without one."""
        to_files = output.is_asked or (form is not None and (form.is_columnar or is_split))
        limit = most_rows(limit, is_for_people=form is None and not to_files)
        return cls(form, output.destination([ending_of(form)]) if to_files else None, output, limit, is_split)

    def write(self, summaries: Iterable[Summary], names: Sequence[str]) -> None:
        """Write tables as they come.

        Args:
            summaries: the tables.
            names: names of the tables, as far as known; if a file of one exists, none is written.
        """
        if self.form and self.limit:
            summaries = (summary.cut(self.limit) for summary in summaries)
        if self.target is None:
            with open_output(None, self.output) as out:
                self._write_together(summaries, out)
        elif self.form and self.form.is_page and not self.is_split:
            with open_output(self.target.path(self.form.ending), self.output) as out:
                self.form.write_page(_sheets(summaries, is_page=True), out)
        else:
            for name in names:
                check_free(self._path(self.target, name, len(names) == 1), self.output.force)
            for summary, findings in _with_new_findings(summaries):
                self._write_file(summary, _texts(findings), self._path(self.target, summary.name, len(names) == 1))

    def _path(self, target: Destination, name: str, is_only: bool) -> Path:
        usual = target.folder / f"{target.name}_{name}{ending_of(self.form)}"
        return target.path() if is_only and target.ending else usual

    def _write_file(self, summary: Summary, lines: Sequence[str], path: Path) -> None:
        if self.form:
            _note_all(lines)
        if self.form and self.form.is_columnar:
            with complete_or_nothing(path, self.output.force) as temporary:
                self.form.write_batches(summary.arrow_batches(), temporary)
            report_written(path)
            return
        with open_output(path, self.output) as out:
            if self.form:
                self.form.write(summary.columns, _rows(summary, is_page=self.form.is_page), out)
            else:
                out.writelines(f"{line}\n" for line in ([*lines, ""] if lines else []))
                summary.write_readable(out, self.limit)

    def _write_together(self, summaries: Iterable[Summary], out: TextIO) -> None:
        if self.form:
            self.form.write_page(_sheets(summaries, is_page=self.form.is_page), as_data(out))
            return
        cut, narrow = [], []
        screen = screen_of(out)
        drawn: set[str] = set()
        for number, (summary, findings) in enumerate(_with_new_findings(summaries)):
            lines = [line for each in findings for line in (_lines(each, screen) if screen else [visible(each.text)])]
            above = [*lines, ""] if lines else []
            heading = visible(summary.name.replace("_", " ").upper())
            heading = screen.bold(heading) if screen else heading
            out.writelines(f"{line}\n" for line in [*([""] if number else []), *above, heading])
            if screen and _draw(summary, out, screen, drawn):
                continue
            shown = summary.write_readable(out, self.limit, screen)
            cut += [summary.name] if shown.rows else []
            narrow += [f"{summary.name}: {', '.join(shown.columns)}"] if shown.columns else []
        out.flush()
        if narrow:
            which = f"columns of {len(narrow)} tables" if len(narrow) > _FEW else "; ".join(narrow)
            note(f"this terminal is too narrow for {which}")
        if cut:
            which = ", ".join(cut) if len(cut) <= _FEW else f"{len(cut)} tables"
            note(f"cut at {amount(self.limit, 'row')}: {which}; --limit 0 shows all")


def _draw(summary: Summary, out: TextIO, screen: Screen, drawn: set[str]) -> bool:
    """Write the picture of a table, unless it was drawn before; return whether it replaces the rows, too."""
    pictured = summary.pictured_by or summary
    picture = pictured.definition.picture
    if picture is None or pictured.name in drawn or not pictured.first(1):
        return False
    drawn.add(pictured.name)
    draw: Callable[[Summary, Screen], Iterable[str]] = entries.load(picture.home, pictured.name)
    out.writelines(f"{line}\n" for line in draw(pictured, screen))
    if not picture.is_all:
        out.write("\n")
    return picture.is_all


def _sheets(summaries: Iterable[Summary], *, is_page: bool) -> Iterator[Sheet]:
    """Yield tables; their findings stand above them on a page, and go to stderr otherwise."""
    for summary, findings in _with_new_findings(summaries):
        lines = _texts(findings)
        if not is_page:
            _note_all(lines)
        rows = _rows(summary, is_page=is_page)
        yield Sheet(summary.name, summary.doc, summary.columns, rows, lines if is_page else ())


def _rows(summary: Summary, *, is_page: bool) -> Iterator[Row]:
    """Return the rows of a table, with short names of kernels on a page for people."""
    return summary.for_people() if is_page else iter(summary)


def _with_new_findings(summaries: Iterable[Summary]) -> Iterator[tuple[Summary, list[Finding]]]:
    """Yield each table with its findings, except those that an earlier table had, too."""
    shown_before: set[str] = set()
    for summary in summaries:
        findings = [finding for finding in summary.findings if finding.text not in shown_before]
        shown_before.update(_texts(findings))
        yield summary, findings


def _texts(findings: Iterable[Finding]) -> list[str]:
    return [finding.text for finding in findings]


def _note_all(lines: Iterable[str]) -> None:
    for line in lines:
        note(line)


_SIGNS: Mapping[Verdict, tuple[str, Colour]] = {
    Verdict.PROBLEM: ("✗", RED),
    Verdict.NOTE: ("•", SKY),
    Verdict.NONE: ("✓", GREEN),
    Verdict.UNKNOWN: ("?", ORANGE),
}


def _lines(finding: Finding, screen: Screen) -> Iterator[str]:
    """Yield the lines of a finding; the description of the job has no sign, and is bold."""
    text = visible(finding.text)
    if finding.rule == JOB:
        yield from map(screen.bold, wrap(text, screen.width, subsequent_indent="  "))
        return
    sign, colour = _SIGNS[finding.verdict]
    first, *more = wrap(text, max(screen.width - 2, 1)) or [""]
    yield f"{screen.paint(sign, colour)} {first}"
    yield from (f"  {line}" for line in more)
