"""How the tables of analyses reach people and files: on stdout, on one page, or a file each.

On a terminal, findings have a sign and a colour for the verdict, and lines that end between words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

from rocpd.base import RocpdError, Row, UsageError, entries, frozen
from rocpd.base.boundary import as_far_as_made
from rocpd.base.output import Destination, check_free, complete_or_nothing
from rocpd.base.visible import as_data, visible
from rocpd.cli import tables
from rocpd.cli.diagnostics import clear_bars, job_text, note, progress, report_written, timed
from rocpd.cli.options import TableOptions
from rocpd.cli.terminal import screen_of
from rocpd.summary.findings import JOB, Finding, Verdict
from rocpd.summary.registry import TextForm
from rocpd.table import Sheet, TableFormat
from rocpd.table.palette import GREEN, ORANGE, RED, SKY, Colour, Screen

if TYPE_CHECKING:
    from rocpd.facts.rank import Options
    from rocpd.session import Session
    from rocpd.summary.result import Summary
    from rocpd.summary.summarize import SummaryOptions

_FEW = 6  # tables that are named when their rows are cut


def run_analyses(session: Session, names: Sequence[str], options: Options) -> tuple[Iterator[Summary], list[str]]:
    """Run analyses; return their tables, and what these are called as far as that is known before.

    Args:
        session: what to read.
        names: analyses or tables; those that lack data are reported, unless all do.
        options: what is asked of each.

    Raises:
        UsageError: an unknown name.
    """
    from rocpd.summary.run import planned

    plan = planned(names)
    answered = timed(_tables(session, plan, options), session.lacks_index)
    return answered, [table for wanted in plan.values() for table in sorted(wanted)]


def _tables(session: Session, plan: Mapping[str, frozenset[str]], options: Options) -> Iterator[Summary]:
    """Run analyses in one pass over the ranks; a table is written before the next is put together.

    Raises:
        RocpdError: no analysis has the data that it needs.
    """
    from rocpd.summary.reading import Reading
    from rocpd.summary.run import run_planned

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
    """Return what notes findings from some of the ranks, for those who wait for all."""

    def say(done: int, findings: Sequence[Finding]) -> None:
        for finding in findings:
            note(f"preliminary, from {done} of {ranks} ranks: {finding.text}")

    return say


def amds_tables(session: Session, options: SummaryOptions) -> tuple[list[Summary], list[str]]:
    """Return AMD's tables and their names.

    Raises:
        RocpdError: there are none.
    """
    from rocpd.summary.summarize import summarize

    session.note_runs()
    with progress("summary", "") as report:
        summaries = list(timed(summarize(session, options, report), session.lacks_index))
    if not summaries:
        raise RocpdError("nothing to summarise: no kernels, copies, allocations or regions in the inputs")
    return summaries, [summary.name for summary in summaries]


@frozen
class TextDelivery:
    """How a format of one analysis alone is delivered.

    Args:
        analysis: its name.
        text: the format.
        target: file; None: stdout.
        output: how stdout shows it, and whether an existing file is replaced.
    """

    analysis: str
    text: TextForm
    target: Destination | None
    output: TableOptions

    def write(self, session: Session, options: Options) -> None:
        """Write the text as it comes."""
        from rocpd.summary.reading import Reading
        from rocpd.summary.run import stages

        path = self.target.path(f"_{self.analysis}{self.text.ending}") if self.target else None
        texts = entries.load(self.text.home, f"format {self.text.name}")
        with (
            tables.open_output(path, self.output) as out,
            progress(self.analysis, "") as report,
            session.job.reporting(report, stages([self.analysis])),
        ):
            shown = as_data(out)
            for text in texts(Reading(session, options)):
                shown.write(text)


@frozen
class Delivery:
    """How the tables of analyses are delivered.

    Args:
        form: format; None: as people read it.
        target: files; None: stdout.
        output: how stdout shows them, and whether existing files are replaced.
        limit: most rows of a table on stdout.
        is_split: a file for each table, even where the format puts several on one page.
    """

    form: TableFormat | None
    target: Destination | None
    output: TableOptions = TableOptions()
    limit: int = 0
    is_split: bool = False

    @classmethod
    def of(cls, form: TableFormat | None, output: TableOptions, limit: int = 0, *, is_split: bool = False) -> Delivery:
        """Return how tables get to where `output` says; else some formats go to files all the same."""
        to_files = output.is_asked or (form is not None and (form.is_columnar or is_split))
        return cls(form, output.destination([tables.ending_of(form)]) if to_files else None, output, limit, is_split)

    def write(self, summaries: Iterable[Summary], names: Sequence[str]) -> None:
        """Write tables as they come.

        Args:
            summaries: the tables.
            names: what they are called, as far as that is known: no file is written when one of theirs exists.
        """
        if self.target is None:
            with tables.open_output(None, self.output) as out:
                self._write_together(summaries, out)
        elif self.form and self.form.is_page and not self.is_split:
            with tables.open_output(self.target.path(self.form.ending), self.output) as out:
                self.form.write_page(_sheets(summaries, is_page=True), out)
        else:
            for name in names:
                check_free(self._path(self.target, name, len(names) == 1), self.output.force)
            for summary, findings in _with_new_findings(summaries):
                self._write_file(summary, _texts(findings), self._path(self.target, summary.name, len(names) == 1))

    def _path(self, target: Destination, name: str, is_only: bool) -> Path:
        usual = target.folder / f"{target.name}_{name}{tables.ending_of(self.form)}"
        return target.path() if is_only and target.ending else usual

    def _write_file(self, summary: Summary, lines: Sequence[str], path: Path) -> None:
        if self.form:
            _note_all(lines)
        if self.form and self.form.is_columnar:
            with complete_or_nothing(path, self.output.force) as temporary:
                self.form.write_batches(summary.arrow_batches(), temporary)
            report_written(path)
            return
        with tables.open_output(path, self.output) as out:
            if self.form:
                self.form.write(summary.columns, _rows(summary, is_page=self.form.is_page), out)
            else:
                out.writelines(f"{line}\n" for line in ([*lines, ""] if lines else []))
                summary.write_readable(out)

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
            note(f"cut at {self.limit} rows: {which}; --limit 0 shows all")


def _draw(summary: Summary, out: TextIO, screen: Screen, drawn: set[str]) -> bool:
    """Write the picture of a table, unless it was drawn; return whether it stands for the rows too."""
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
    """Yield tables; what they conclude stands above them on a page, and goes to stderr otherwise."""
    for summary, findings in _with_new_findings(summaries):
        lines = _texts(findings)
        if not is_page:
            _note_all(lines)
        yield Sheet(
            summary.name, summary.doc, summary.columns, _rows(summary, is_page=is_page), lines if is_page else ()
        )


def _rows(summary: Summary, *, is_page: bool) -> Iterator[Row]:
    """Return the rows of a table; on a page, which people read, names of kernels are short."""
    return summary.for_people() if is_page else iter(summary)


def _with_new_findings(summaries: Iterable[Summary]) -> Iterator[tuple[Summary, list[Finding]]]:
    """Yield each table with what it concludes, as far as no table before it said the same."""
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
    """Yield the lines of a finding; what the job is has no sign, and stands out."""
    text = visible(finding.text)
    if finding.rule == JOB:
        yield from map(screen.bold, wrap(text, screen.width, subsequent_indent="  "))
        return
    sign, colour = _SIGNS[finding.verdict]
    first, *more = wrap(text, max(screen.width - 2, 1)) or [""]
    yield f"{screen.paint(sign, colour)} {first}"
    yield from (f"  {line}" for line in more)
