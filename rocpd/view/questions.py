"""The questions of a page to a job: each is a value that is sent to a process, which answers it. Beside the SQL of
users there is a list of tables and views.

Times are nanoseconds from the start of the time line of the whole job.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import resource
import shlex
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rocpd.base import RocpdError, UsageError, frozen
from rocpd.base.sqlite import apsw
from rocpd.base.texts import visible
from rocpd.federate.select.window import Window
from rocpd.federate.statements import statements
from rocpd.schema.calculated import CalculatedTable
from rocpd.schema.load import TABLES, VIEWS, BaseTable, View, table, view
from rocpd.session import Session
from rocpd.summary.relations import RELATIONS
from rocpd.table.cell import one_line
from rocpd.table.human import all_numbers

_READING = ("SELECT", "WITH", "VALUES", "EXPLAIN")
_MOST_TEXT = 8_000_000  # characters of an answer
_LONGEST_CELL = 100_000  # characters, or bytes of a blob
_MORE_MEMORY = 1 << 29  # memory for a statement [bytes]
_FIRST_WORD = re.compile(r"(?>\s+|--[^\n]*|/\*.*?\*/)*+(\w+)", re.S)


class Question(Protocol):
    """A question that can be asked of an open job."""

    def of(self, session: Session) -> Any:
        """Return the answer; it can be pickled."""


@frozen
class TakenPart:
    """Part of the time line [ns from its start]; None: all of it that the job was opened with."""

    start: int | None = None
    end: int | None = None

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None

    def words(self) -> Iterable[str]:
        """Yield the options for the same selection on a command line."""
        yield from (f"--{side} {ns}ns" for side, ns in (("start", self.start), ("end", self.end)) if ns is not None)

    def of(self, session: Session) -> Session:
        """Return the session with only this part selected."""
        start, end = (None if ns is None else f"+{ns}ns" for ns in (self.start, self.end))
        return session.within(Window(start, end)) if self else session


@frozen
class Statement:
    """SQL that reads, on the rows of a part, and the largest number of rows of the answer."""

    sql: str
    most: int
    part: TakenPart = TakenPart()

    def of(self, session: Session) -> dict[str, Any]:
        """Return `columns`, `rows` (texts for people; None for NULL), `numeric` columns, `more` and `seconds`.

        Raises:
            UsageError: the statement does not read.
            QueryError: SQLite refuses it.
        """
        refuse_writing(self.sql)
        started = time.perf_counter()
        with little_memory():
            rows = self.part.of(session).execute(self.sql)
            columns = list(rows.columns)
            shown, numeric, room = [], [True] * len(columns), _MOST_TEXT
            for row in itertools.islice(rows, self.most):
                numeric = [known and all_numbers([value]) for known, value in zip(numeric, row, strict=True)]
                shown.append(list(map(_cell, row)))
                room -= sum(len(text or "") for text in shown[-1])
                if room < 0:
                    break
            has_more = next(iter(rows), None) is not None
        return {
            "columns": [visible(name) for name in columns],
            "rows": shown,
            "numeric": numeric,
            "more": has_more,
            "seconds": time.perf_counter() - started,
        }


def _cell(value: Any) -> str | None:
    """Return a value as text for people; None for NULL."""
    if isinstance(value, str | bytes) and len(value) > _LONGEST_CELL:
        return f"{one_line(value[:_LONGEST_CELL])}…"
    return None if value is None else one_line(value)


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Limit the additional memory of this process for the duration of a block; without a limit if the system can't
    count it.

    Raises:
        RocpdError: the block needs more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        resource.setrlimit(resource.RLIMIT_DATA, (pages * resource.getpagesize() + _MORE_MEMORY, hard))
    try:
        yield
    except (MemoryError, apsw.NoMemError) as error:
        raise RocpdError("the answer takes too much memory", "fewer or shorter values take less") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def refuse_writing(sql: str) -> None:
    """Refuse statements that do not begin like reading ones; SQLite's authorizer refuses the rest that writes.

    Raises:
        UsageError: it is not a single statement that reads.
    """
    word = _FIRST_WORD.match(sql)
    if len(list(statements(sql))) != 1 or not word or word[1].upper() not in _READING:
        raise UsageError("only one statement that reads can be asked", f"it begins with {', '.join(_READING)}")


@frozen
class TraceOfPart:
    """A Perfetto trace of a part, written to a path."""

    part: TakenPart
    path: str

    def of(self, session: Session) -> str:
        """Write the trace and return its path; errors as `Session.convert`."""
        (path,) = self.part.of(session).convert("pftrace", Path(self.path), force=True)
        return str(path)


@frozen
class TimeLineStart:
    """The time in a trace at which the time line starts."""

    def of(self, session: Session) -> str:
        """Return the time [ns], 0 without events, as text, since numbers in a page are less exact."""
        return str(session.time_range[0] if session.time_range else 0)


@frozen
class Page:
    """The report on a part, without the time line of ranks, which is on the page, and the flame graph, on another page.

    Args:
        part: of the time line.
        inputs: the inputs as words, for commands; empty: the files.
    """

    part: TakenPart
    inputs: tuple[str, ...] = ()

    def of(self, session: Session) -> str:
        """Return HTML for a page; errors as `Session.report`."""
        from rocpd.report.build import ReportOptions, build, inputs_of
        from rocpd.report.writers.html import body

        inputs = " ".join([shlex.join(self.inputs) or inputs_of(session), *self.part.words()])
        asked = ReportOptions(without=frozenset({"overview", "flames"}), inputs=inputs)
        return body(build(self.part.of(session), asked).sections)


def relations() -> list[dict[str, Any]]:
    """Return `name`, `about` and `columns` (`name`, `unit`, `about`) of each relation, tables of files last."""
    described: list[tuple[str, CalculatedTable | View | BaseTable]] = [(name, view(name)) for name in VIEWS]
    described += [(name, load().table) for name, load in RELATIONS.items()]
    described += [(name, table(name)) for name in TABLES]
    return [
        {
            "name": name,
            "about": relation.doc.splitlines()[0],
            "columns": [{"name": c.name, "unit": c.unit, "about": c.doc} for c in relation.columns],
        }
        for name, relation in described
    ]
