"""Questions of programs about a job: each is a value that is sent to the process that answers it.

A new question needs changes in this file, `QUESTIONS`, and its test. Questions only read; each names the command that
shows the same answer. Fields are declared like options of the command line, so that both have the same names.
`rocpd.answers` asks them in this process.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from rocpd.agents.document import (
    LEAST_BYTES,
    MOST_BYTES,
    Document,
    conclusion,
    divided,
    fitted,
    rows_of,
    table_of,
    with_texts,
)
from rocpd.base import InputError, QueryError, RocpdError, UsageError, frozen
from rocpd.base.option import Option, declare, member, options_of, spelt, typed
from rocpd.base.texts import visible
from rocpd.federate.select.filters import Filters
from rocpd.federate.select.window import Window
from rocpd.live import AFTER_S
from rocpd.session import Session, connect
from rocpd.summary.findings import Finding
from rocpd.view.questions import little_memory, refuse_writing, relations

_BY = "rank, host, run, command, agent, stream, step, marker, api or dispatch, as far as the analysis can"


@frozen
class Selected:
    """The selected part of a job, and the largest size of the answer.

    Args:
        start, end: time on the job's line, such as `30%`, `12.5ms` or `-90ms`; None: open.
        step: number of a step, or text of its marker.
        rank, host, kernel: as filters of the command line.
        most_bytes: size of the answer as UTF-8.
    """

    start: str | None = declare(None, "Only from here on: 30%, 12.5ms from the start, -90ms from the end.")
    end: str | None = declare(None, "Only up to here, as start.")
    step: str | None = declare(None, "Only this step: its number, or the text of its marker.")
    rank: str | None = declare(None, "Only these ranks, such as 0-3,8.")
    host: str | None = declare(None, "Only these hosts, separated by commas.")
    kernel: str | None = declare(None, "Only kernels whose name this regular expression finds.")
    most_bytes: int = declare(
        MOST_BYTES, "Bytes of the answer at most; what is left out is said.", least=LEAST_BYTES, most=4_000_000
    )

    def on(self, session: Session) -> Session:
        """Return the session with this selection; errors as `Session.within` and `Session.where`."""
        if filters := Filters(ranks=self.rank, hosts=self.host, kernel=self.kernel):
            session = session.where(filters)
        window = Window(self.start, self.end, step=self.step)
        return session.within(window) if window else session

    def words(self) -> Iterator[str]:
        """Yield the options for the same selection on a command line."""
        for option in options_of(Selected):
            if option.name != "most_bytes":
                yield from spelt(option, getattr(self, option.name))


@frozen
class Asking:
    """A question.

    Args:
        inputs: inputs of the job, for the command that shows the answer.
        selected: the selected part.
    """

    NAME: ClassVar[str] = ""
    reads_rows: ClassVar[bool] = True

    inputs: tuple[str, ...]
    selected: Selected

    def of(self, session: Session) -> Document:
        """Return the answer: `command`, `certainty`, and the fields of `answer`; `not_recorded` lists missing data.

        Raises:
            UsageError: the question makes no sense.
            InputError: a file cannot be read.
        """
        document: Document = {"command": self.command(), "notes": [], "not_recorded": []}
        try:
            document |= self.answer(self.selected.on(session))
        except (UsageError, InputError, QueryError):
            raise
        except RocpdError as error:
            hint = f" ({error.hint})" if error.hint else ""
            document["not_recorded"] = [visible(f"{error.message}{hint}")]
        document["notes"] = list(map(visible, session.notes))
        return fitted({name: value for name, value in document.items() if value != []}, self.selected.most_bytes)

    def answer(self, session: Session) -> Document:
        """Return the data of the answer as a document; errors as `of`."""
        raise NotImplementedError

    def own_words(self) -> Iterator[str]:
        """Yield the words of the command line for this question alone: its fields as options."""
        kind: type = type(self)
        for option in options_of(kind):
            yield from spelt(option, getattr(self, option.name))

    def command(self) -> str:
        """Return the command line that shows the same answer."""
        names = map(shlex.quote, self.inputs)
        return " ".join(["rocpd", self.NAME, *self.own_words(), *names, *self.selected.words()])


@frozen
class Query(Asking):
    """Ask SQL of all ranks at once: views such as kernels, regions, memory_copies, and every table of every analysis as
    summary.NAME, such as select * from summary.budget. Times are nanoseconds, sizes bytes. Only reading is possible.
    """

    NAME = "query"

    sql: str = declare("", "One statement that reads: SELECT, WITH, VALUES or EXPLAIN.", is_required=True)

    def own_words(self) -> Iterator[str]:
        """Yield the statement."""
        yield shlex.quote(self.sql)

    def answer(self, session: Session) -> Document:
        """Return the rows."""
        refuse_writing(self.sql)
        with little_memory():
            rows = session.execute(self.sql)
            table = rows_of(rows.columns, rows)
        return {"certainty": "exact: counted from the rows that were recorded", "tables": [table]}


@frozen
class Schema(Asking):
    """List tables, views and calculated tables that SQL can name, or the columns of one, with units and meanings."""

    NAME = "schema"
    reads_rows = False

    relation: str | None = declare(None, "A table or view; without one all are listed.")

    def command(self) -> str:
        """Return the command line that shows the same answer."""
        return " ".join(["rocpd schema", *([shlex.quote(self.relation)] if self.relation else [])])

    def answer(self, session: Session) -> Document:
        """Return the relations, or the columns of one; for a table of the session only its columns."""
        known = {each["name"]: each for each in relations()}
        if self.relation is None:
            names = [[name, each["about"]] for name, each in known.items()]
            return {"tables": [rows_of(("name", "about"), names, "relations")]}
        chosen = known.get(self.relation.lower()) or known.get(f"summary.{self.relation.lower().replace('-', '_')}")
        if chosen is None:
            raise UsageError(f"{visible(self.relation)}: neither table nor view", "schema without a relation lists all")
        columns = [[each["name"], each["unit"], each["about"]] for each in chosen["columns"]]
        return {"tables": [rows_of(("column", "unit", "meaning"), columns, chosen["name"], chosen["about"])]}


@frozen
class SummaryTable(Asking):
    """Show an analysis: overview (the verdict: what is slow, on which rank, why), kernels, budget, idle, stragglers,
    steps, copies, memory, launch and many more; table "list" lists all. Largest rows first, exact over all ranks.
    """

    NAME = "summary"

    table: str = declare("overview", "An analysis or one of its tables, such as kernels; list: which there are.")
    by: str | None = declare(None, f"Divide it by {_BY}.")

    def own_words(self) -> Iterator[str]:
        """Yield the name of the table and the division."""
        yield "--list" if self.table == "list" else shlex.quote(self.table)
        if self.by:
            yield from ("--by", shlex.quote(self.by))

    def answer(self, session: Session) -> Document:
        """Return the tables and conclusions."""
        from rocpd.facts.rank import By, Options
        from rocpd.summary.reading import analyses, run

        if self.table == "list":
            return {"tables": [rows_of(("analysis", "tables", "what"), analyses(), "analyses")]}
        division = None if self.by is None else member(By, "by", self.by)
        tables = list(run(session, self.table, Options(by=division)))
        findings = {finding.text: finding for table in tables for finding in table.findings}
        return {
            "certainty": "tables are exact: summed over the rows that were recorded; conclusions have a certainty each",
            **divided(findings.values()),
            "tables": [table_of(table) for table in tables],
        }


@frozen
class Advise(Asking):
    """Say what costs time and what to do about it, largest gain first; rules that could not look say what to record."""

    NAME = "advise"

    def answer(self, session: Session) -> Document:
        """Return the findings with their certainty and gain, and the reasons why rules could not look."""
        advice = session.advise()
        return {
            "job": visible(advice.job.text),
            "certainty": "of each conclusion; a gain is that of a replay within its bounds, or at most where it is not",
            "conclusions": [
                {**conclusion(finding), "explains": [conclusion(each) for each in advice.effects(finding)]}
                for finding in advice.findings
            ],
            "not_recorded": [f"{finding.rule}: {visible(finding.text)}" for finding in advice.unable],
            "gains_little": [f"{finding.rule}: {visible(finding.text)}" for finding in advice.slight],
            "found_nothing": list(advice.silent),
        }


@frozen
class Replayed(Asking):
    """Predict how long a step would take, had something been different; without changes: without each cause found."""

    NAME = "whatif"

    without: tuple[str, ...] = declare(
        (), "Goes: straggler, rank:6, host:NAME, link:0-3, step:7, call:REGEX with its waits, or gap:1.", several=True
    )
    scale: tuple[str, ...] = declare(
        (), "Multiplied: kernel:REGEX=0.7, launch=0.5, collective:all-reduce=0.8, copies=0 …", several=True
    )
    overlap: tuple[str, ...] = declare((), "comm, comm:RANKS or copies overlap.", several=True)

    def answer(self, session: Session) -> Document:
        """Return the prediction with its bounds, and the limits of the step in it."""
        answer = session.whatif(without=self.without, scale=self.scale, overlap=self.overlap)
        return {
            "certainty": "a prediction between low_ns and high_ns, as far as the recorded order of waits explains it",
            "text": visible("; ".join(map(str.strip, str(answer).splitlines()))),
            **with_texts(answer.document(), visible),
        }


@frozen
class Diff(Asking):
    """Say whether a job is slower than another and where the difference is: parts of a step, kernels, ranks."""

    NAME = "diff"

    base: str = declare("", "The job to compare with: one of the inputs, or below one.", is_required=True)
    margin: float = declare(3.0, "Differences up to this many percent do not matter.", least=0, most=1e3)

    def command(self) -> str:
        """Return the command line that shows the same answer."""
        margin = ["--margin", f"{self.margin:g}"] if self.margin != Diff.margin else []
        sides = ["--base", shlex.quote(self.base), "--new", *map(shlex.quote, self.inputs)]
        return " ".join(["rocpd diff", *sides, *margin, *self.selected.words()])

    def answer(self, session: Session) -> Document:
        """Return the verdict with its interval, and the tables that add up to the difference."""
        from rocpd.compare.options import DiffOptions
        from rocpd.compare.tables import tables_of

        with connect(self.base) as other:
            comparison = session.diff(self.selected.on(other), DiffOptions(margin=self.margin))
        tables = [table_of(table) for table in tables_of(comparison)]
        findings: Sequence[Finding] = comparison.findings
        return {
            "verdict": comparison.decision.verdict.value,
            "certainty": comparison.decision.confidence.value,
            **divided(findings),
            "tables": tables,
        }


@frozen
class SinceWhen(Asking):
    """Say since when the job is as fast as it is, over the runs in its history: changes, their reasons, and noise."""

    NAME = "history"
    reads_rows = False

    store: str = ""
    metric: tuple[str, ...] = declare((), "Only these, such as step or kernel:REGEX.", several=True)
    by: str = declare("host", "What runs are grouped by: host, gpu, or the name of a label.")

    def command(self) -> str:
        """Return the command line that shows the same answer."""
        return " ".join(["rocpd history", shlex.quote(self.store) if self.store else "STORE", *self.own_words()])

    def answer(self, session: Session) -> Document:
        """Return the changes with their times, the runs, and their noise.

        Raises:
            RocpdError: no history was named, or it has no runs.
        """
        from rocpd.history.history import HistoryOptions, open_history

        if not self.store:
            raise RocpdError("no history of the job was named", "rocpd mcp JOB --history STORE")
        history = open_history(self.store, HistoryOptions(metrics=self.metric, by=self.by))
        return {
            "certainty": "of each change its p: how probable it is without one; noise is that of the runs themselves",
            **divided(history.findings),
            "tables": [table_of(table) for table in (history.changes(), history.runs(), history.noise())],
        }


@frozen
class Hangs(Asking):
    """Say whether a running or killed job hangs: which rank is missing in which collective, and who waits for it."""

    NAME = "hang"
    reads_rows = False

    after: float = declare(AFTER_S, "Seconds without progress after which a group is stuck.", least=0, most=86_400)

    def own_words(self) -> Iterator[str]:
        """Yield the limit unless it is the default."""
        if self.after != Hangs.after:
            yield from ("--after", f"{self.after:g}")

    def command(self) -> str:
        """Return the command line that shows the same answer."""
        return " ".join(["rocpd hang", *map(shlex.quote, self.inputs), *self.own_words()])

    def answer(self, session: Session) -> Document:
        """Return the verdict, the missing ranks, and the progress of each rank."""
        from rocpd.live.hang import Hanging, hang

        answer = hang(session, self.after)
        known = answer.document()
        groups = [{"rank": rank["rank"], **group} for rank in known["ranks"] for group in rank["groups"]]
        parts = {"waits": known["waits"], "ranks": known["ranks"], "groups": groups}
        document: Document = {
            "certainty": "recorded: what each process had begun and ended at its last sign of life",
            "verdict": answer.verdict.value,
            "text": visible("; ".join(answer.lines)),
            "missing": known["missing"],
            "tables": [_plain_table(name, rows) for name, rows in parts.items() if rows],
        }
        if answer.verdict is Hanging.UNKNOWN:
            document["not_recorded"] = [visible(answer.lines[0])]
        return document


def _plain_table(name: str, rows: Sequence[Mapping[str, Any]]) -> Document:
    """Return a table of documents, with the fields that are no documents themselves."""
    columns = [key for key in rows[0] if key != "groups"]
    return rows_of(columns, [[_cell(row[key]) for key in columns] for row in rows], name)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else value


QUESTIONS: dict[str, type[Asking]] = {
    question.NAME: question for question in (SummaryTable, Advise, Query, Schema, Replayed, Diff, SinceWhen, Hangs)
}
"""Name -> question, in the order in which programs see them."""


def arguments_of(question: type[Asking]) -> tuple[Option, ...]:
    """Return the arguments of a question: its own fields, then those of `Selected`, as far as it reads rows."""
    shared = [each for each in options_of(Selected) if question.reads_rows or each.name == "most_bytes"]
    kind: type = question  # for mypy, which takes classes with an unhashable base for unhashable themselves
    return (*options_of(kind), *shared)


def asked(name: str, inputs: Sequence[str], arguments: Mapping[str, Any], store: str = "") -> Asking:
    """Return a question from its name and arguments.

    Args:
        name: a key of `QUESTIONS`.
        inputs: inputs of the job.
        arguments: field -> value from JSON; None counts as not given.
        store: the history of the job; empty: not named.

    Raises:
        UsageError: the question or an argument is unknown, or a value has the wrong type.
    """
    if name not in QUESTIONS:
        raise UsageError(f"no question is called {visible(name)}", f"one of {', '.join(QUESTIONS)}")
    known = {option.name: option for option in arguments_of(QUESTIONS[name])}
    given = {key: value for key, value in arguments.items() if value is not None}
    if unknown := sorted(given.keys() - known.keys()):
        raise UsageError(f"{name}: takes no {visible(', '.join(unknown))}", f"one of {', '.join(known)}")
    if missing := [key for key, option in known.items() if option.is_required and not given.get(key)]:
        raise UsageError(f"{name}: needs {', '.join(missing)}")
    values = {key: typed(known[key], _plain(known[key], value)) for key, value in given.items()}
    shared = {field.name for field in dataclasses.fields(Selected)}
    selected = Selected(**{key: value for key, value in values.items() if key in shared})
    of_question = {key: value for key, value in values.items() if key not in shared}
    if QUESTIONS[name] is SinceWhen:
        of_question["store"] = store
    return QUESTIONS[name](tuple(inputs), selected, **of_question)


def _plain(option: Option, value: Any) -> Any:
    """Return the value of an argument from JSON in the type of its option: texts for numbers, as in `step: 7`.

    Half of a character, which JSON can hold, becomes a question mark.
    """
    if isinstance(value, list):
        return [_plain(option, each) for each in value]
    if option.kind is str and type(value) is int:
        return str(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(question: type[Asking]) -> Document:
    """Return the JSON schema of the arguments of a question."""
    properties: dict[str, Document] = {}
    for option in arguments_of(question):
        kind: Document = {"type": _KINDS[option.kind]}
        bounds = {"minimum": option.least, "maximum": option.most}
        kind |= {key: bound for key, bound in bounds.items() if bound is not None}
        shape = {"type": "array", "items": kind} if option.several else kind
        properties[option.name] = {**shape, "description": option.help}
        if option.default not in (None, (), "") and not option.is_required:
            properties[option.name]["default"] = option.default
    required = [option.name for option in arguments_of(question) if option.is_required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class Answers:
    """A job that is open for questions; use it in a `with` block or call `close`.

    Args:
        inputs: files, folders and packages.
        session: the job.
        store: its history; empty: none.
    """

    def __init__(self, inputs: Sequence[str], session: Session, store: str = "") -> None:
        self._inputs, self._session, self._store = inputs, session, store

    def ask(self, question: str, **arguments: Any) -> Document:
        """Return the answer to a question as `rocpd mcp` gives it: a document for JSON.

        Args:
            question: one of `questions()`.
            arguments: its arguments.

        Raises:
            UsageError: the question or an argument is unknown, or makes no sense.
            InputError: a file cannot be read.
        """
        return asked(question, self._inputs, arguments, self._store).of(self._session)

    @staticmethod
    def questions() -> dict[str, Document]:
        """Return question -> JSON schema of its arguments."""
        return {name: schema_of(question) for name, question in QUESTIONS.items()}

    def close(self) -> None:
        """Close the job; further calls do nothing."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answers(*inputs: str, history: str | Path = "") -> Answers:
    """Open a job for questions whose answers are documents: units, certainty, the command that shows the same.

    Args:
        inputs: files, globs, folders, packages; none: as `rocpd.connect`.
        history: the store of the job's history; empty: none.

    Raises:
        InputError: no file matches, or one cannot be used.
    """
    return Answers(inputs, connect(list(inputs) or None), str(history))
