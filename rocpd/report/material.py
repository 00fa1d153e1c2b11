"""The material of sections: the tables of all analyses that they need, from one pass over the ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from rocpd.advice.advice import Advice
from rocpd.advice.judge import analysis_function, judge, questions, tables_of_rules
from rocpd.advice.registry import known_rules
from rocpd.advice.rule import thresholds
from rocpd.base import Row, frozen
from rocpd.base.boundary import each_for_itself
from rocpd.base.option import Option, spelt
from rocpd.chart.draw import draw
from rocpd.chart.model import Chart
from rocpd.chart.plot import NAMING
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import compared_with
from rocpd.compare.run_profile import RunProfile
from rocpd.facts.rank import By, Options
from rocpd.federate.federation import Federation, Notes
from rocpd.report.contents import COMPARED, Entry, Inquiry
from rocpd.report.model import Block, Column, Figure, Name, Table
from rocpd.summary.reading import Function, Reading, known_tables
from rocpd.summary.registry import TABLES, joined_analyses, known_analyses, tables_of
from rocpd.summary.result import Field, Summary, away_from_page
from rocpd.table.human import OF_ROW, Head, heading, with_unit

HELD_ROWS = 2000
"""Rows of a table that a report holds; files for programs hold all."""

_CELLS = 16_000  # cells of the time line of ranks: more ranks get fewer slices
_LEAST_SLICES, _MOST_SLICES = 120, 800
_RATES = ("GB/s", "GiB/s")
_RATE = re.compile("gi?b_per_s$")


Arrange: TypeAlias = Callable[[Chart], Chart]
"""Adds parts to a chart that its table does not hold."""


@frozen
class ReportBase:
    """The base of a comparison.

    Args:
        runs: its runs.
        words: its name on a command line; empty: no command makes the same comparison.
        connect: arguments of `rocpd.connect` that open it, in Python; empty: it is not a job.
        options: options of the comparison.
        selection: the selected part of the job, in words; empty: all of it.
    """

    runs: tuple[RunProfile, ...]
    words: str = ""
    connect: str = ""
    options: DiffOptions = DiffOptions()
    selection: str = ""


@frozen
class Material:
    """The material that sections arrange.

    Args:
        session: the job.
        options: options of analyses.
        answers: tables of each question by name; None: all tables of the job.
        missing: reason why a question has no answer.
        inputs: the inputs as words of a command line.
        base: the base of the comparison.
    """

    session: Federation
    options: Options
    answers: Mapping[Inquiry, Mapping[str, Summary]]
    missing: Mapping[Inquiry, str]
    inputs: str
    base: ReportBase | None = None

    @cached_property
    def advice(self) -> Advice:
        """The advice on the job, from the tables that its rules read."""
        asked = (self.tables(question.analysis, question.by) for question in advised())
        tables = {name: table for answer in asked for name, table in answer.items()}
        return judge(self.session, tables, self.options, thresholds(known_rules()), self.inputs)

    def tables(self, analysis: str, by: By | None = None) -> Mapping[str, Summary]:
        """Return the tables of an analysis, by name; none if it lacks data."""
        return self.answers.get(Inquiry(analysis, by), {})

    def table(
        self, summary: Summary, title: str, columns: Sequence[str] = (), rows: Sequence[Row] | None = None
    ) -> Table:
        """Return a table of an analysis for a report.

        Args:
            summary: the table.
            title: for people.
            columns: columns to show; empty: all.
            rows: rows to show; None: the first ones.
        """
        return arranged(summary, title, columns, rows, (self._command(summary), self._code(summary)))

    def figure(
        self, name: str, summary: Summary | None, says: str, table: Table, arrange: Arrange | None = None
    ) -> Block:
        """Return the chart of a table of an analysis; only the table behind it if there are no rows.

        Args:
            name: name of the chart.
            summary: the table to draw; None: nothing to draw, as for separate runs, which have no time in common.
            says: the chart in words.
            table: the table behind the chart.
            arrange: adds parts to the chart that the table does not hold.
        """
        if summary is None or not summary.first(1):
            return table
        return figure(name, summary, says, table, f"{self._code(summary)}.plot()", arrange)

    def _by(self, summary: Summary) -> By | None:
        """Return the division of a table, by the question that it answers."""
        return next((asked.by for asked, tables in self.answers.items() if summary in tables.values()), None)

    def _command(self, summary: Summary) -> str:
        by = self._by(summary)
        words = ["rocpd summary", summary.name, self.inputs, *([f"--by {by}"] if by else [])]
        for option, value in self._asked_of(summary):
            words += spelt(option, value) if option.flag not in self.inputs.split() else ()  # as with --step
        return " ".join(words)

    def _code(self, summary: Summary) -> str:
        by = self._by(summary)
        words = [f'"{summary.name}"', *([f'by="{by}"'] if by else [])]
        for option, value in self._asked_of(summary):
            words.append(f"{option.name}={(str(value) if isinstance(value, Path) else value)!r}")
        return f"session.summary({', '.join(words)})"

    def _asked_of(self, summary: Summary) -> list[tuple[Option, object]]:
        """Return the options that the analysis of a table reads and that were asked for, with their values."""
        analysis = known_analyses().get(TABLES.get(summary.name, summary.name))
        reads = analysis.options if analysis else ()
        asked = [(option, getattr(self.options, option.name, None)) for option in reads]
        return [(option, value) for option, value in asked if value not in (None, option.default)]


def arranged(
    summary: Summary,
    title: str,
    columns: Sequence[str] = (),
    rows: Sequence[Row] | None = None,
    again: tuple[str, str] = ("", ""),
) -> Table:
    """Return a table of an analysis for a report.

    Args:
        summary: the table.
        title: for people.
        columns: columns to show; empty: all.
        rows: rows to show; None: the first ones.
        again: command, and Python, that make it again; empty if there are none.
    """
    every = iter(summary)  # once: ten thousand ranks that wait for each other have millions of rows
    first = list(islice(every, HELD_ROWS))
    count = len(first) + sum(1 for _ in every)
    chosen = first if rows is None else rows[:HELD_ROWS]
    units = {row[summary.columns.index("unit")] for row in chosen} if "unit" in summary.columns else set()
    if len(units) > 1:
        chosen = [with_unit([Head(field.name, field.unit) for field in summary.fields], row) for row in chosen]
    places = [summary.columns.index(name) for name in columns or summary.columns]
    cells = tuple(
        tuple(_cell(row[place], short[place]) for place in places)
        for row, short in zip(chosen, summary.shortened(chosen), strict=True)
    )
    fields = [_of_table(summary.fields[place], units) for place in places]
    heads = tuple(_head(field, [row[number] for row in cells]) for number, field in enumerate(fields))
    return Table(summary.name, title, away_from_page(summary.doc), heads, cells, count, *again)


def figure(name: str, summary: Summary, says: str, table: Table, code: str, arrange: Arrange | None = None) -> Block:
    """Return the chart of a table, drawn; only the table if that fails. Arguments as of `Figure` and above."""

    def drawn() -> Block:
        chart = arrange(summary.chart()) if arrange else summary.chart()
        return Figure(name, chart, draw(chart), says, table, code)

    return each_for_itself(f"chart {name}", drawn, lambda _: table)


def _cell(value: object, short: object) -> object:
    return value if short == value else Name(str(short), str(value))


def _of_table(field: Field, units: Collection[object]) -> Field:
    """Return a field; if its unit is in the rows, with the unit that all rows share, if they share one."""
    is_of_rows = field.unit == OF_ROW and len(units) == 1
    return replace(field, unit=str(next(iter(units)) or "")) if is_of_rows else field


def _head(field: Field, values: Iterable[object]) -> Column:
    known = [value for value in values if value is not None]
    is_number = bool(field.unit) or (bool(known) and all(isinstance(value, (int, float)) for value in known))
    name = heading(Head(field.name, field.unit))
    name = _RATE.sub("rate", name) if field.unit in _RATES else name
    doc = away_from_page(field.doc)
    return Column(name.replace("_", " "), field.unit, doc, is_number, is_count=is_number and field.name not in NAMING)


def gather(
    session: Federation, sections: Iterable[Entry], options: Options, inputs: str, base: ReportBase | None = None
) -> Material:
    """Read all tables for the sections, each rank once.

    Raises:
        InputError: a file is damaged.
    """
    asked = asked_by(sections)
    every = known_analyses()
    costly = {table for analysis in every.values() for table in analysis.costly} - tables_of_rules(known_rules())
    wanted = frozenset(tables_of(every)) - costly
    options_of = {str(question): _options(session, options, question) for question in asked}
    functions = {str(question): _function(question, base) for question in asked}
    known = known_tables(Reading(session, wanted=wanted), functions, options_of)
    every_answer = {question: answer for question, (_, answer) in zip(asked, known, strict=True)}
    answers = {question: answer for question, answer in every_answer.items() if not isinstance(answer, str)}
    missing = {question: answer for question, answer in every_answer.items() if isinstance(answer, str)}
    quiet = Federation(session.job, session.selection, Notes(), owns_files=False)
    return Material(quiet.counted_once(), options, answers, missing, inputs, base)


def asked_by(sections: Iterable[Entry]) -> list[Inquiry]:
    """Return the questions of sections."""
    concluding = *map(Inquiry, joined_analyses()), *advised()
    needs = (question for each in sections for question in (*each.needs, *(concluding if each.concludes else ())))
    return list(dict.fromkeys(needs))


def _function(question: Inquiry, base: ReportBase | None) -> Function:
    if base and question == COMPARED:
        return compared_with(base.runs, base.options, base.selection)
    return analysis_function(question.analysis)


def advised() -> tuple[Inquiry, ...]:
    """Return the questions of the rules of advice; a default division is left out, as in those of other sections."""
    analyses = known_analyses()
    return tuple(
        Inquiry(name, None if by is analyses[name].divided_by else by)
        for name, by in questions(tables_of_rules(known_rules())).items()
    )


def _options(session: Federation, options: Options, question: Inquiry) -> Options:
    """Return the options of a question; the time line of ranks is as fine as its size allows."""
    slices = max(_LEAST_SLICES, min(_MOST_SLICES, _CELLS // max(1, len(session.ranks))))
    bins = slices if question.analysis == "ranks" else options.bins
    return replace(options, by=question.by, bins=bins)
