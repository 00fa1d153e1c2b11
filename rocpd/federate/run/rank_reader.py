"""Reads one rank: every table and view holds the selected rows of that rank alone.

Work on a reader is the same in this process and in others, which open the rank's file by themselves.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeAlias

from rocpd.base import Answer, Parameters, Row, frozen
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.pool import Lend, Share, ShareDatabase, borrow
from rocpd.schema.render import RankTables, outside_of


@frozen
class Fact:
    """A value that is derived of all rows of a rank, under a name that means the same in every process.

    Args:
        name: of the fact.
        version: of its definition: raise it when the same rows give another value.
        types: of its parts, besides columns, texts, numbers and what holds these; frozen, or named tuples.
        asked: what the value hangs on besides the rows: texts and numbers.
    """

    name: str
    version: int
    types: tuple[type, ...]
    asked: tuple[object, ...] = ()

    def of(self, *asked: object) -> Fact:
        """Return the fact for what is asked."""
        return Fact(self.name, self.version, self.types, asked)


class FactsOfRank(Protocol):
    """The facts that are kept of one rank, or of several together, while work on them is done."""

    def known(self, fact: Fact) -> Any:
        """Return the value of a fact; None: it is not kept."""

    def derived(self, fact: Fact, value: object) -> None:
        """Take the value of a fact, to be kept."""

    def keep(self) -> None:
        """Keep what was derived."""


class FactStore(Protocol):
    """Keeps facts of ranks; can be sent to another process."""

    def of(self, *ranks: Rank) -> FactsOfRank | None:
        """Return what is kept of a rank, or of several together; None: nothing can be."""

    def close(self) -> None:
        """Release what was opened; idempotent."""


@frozen
class RankReader:
    """Reads one rank.

    Args:
        rank: the rank.
        tables: its tables as a connection to its own file names them.
        lend: lends a connection to that file.
        known: what was read before, by what it was read with, where several works on the rank share what they read;
            None: nothing is kept.
        facts: keeps facts for other commands; None: nothing does.
    """

    rank: Rank
    tables: RankTables
    lend: Callable[[], AbstractContextManager[ShareDatabase]]
    known: dict[object, Any] | None = None
    facts: FactsOfRank | None = None

    def whole(self) -> RankReader:
        """Return a reader of all rows of the rank, whatever the window and filters."""
        return self._of_any_time({})

    def unwindowed(self) -> RankReader:
        """Return a reader of the rows that pass the filters, whatever the window."""
        return self._of_any_time(self.tables.filtered)

    def _of_any_time(self, only: Mapping[str, str]) -> RankReader:
        """Return a reader of rows in and outside of the window; the same one where nothing is left out."""
        now, is_whole = self.tables, self.tables.has_outside
        if (now.only, now.values, now.filtered, now.is_whole) == (only, {}, {}, is_whole):
            return self
        tables = dataclasses.replace(now, only=only, values={}, filtered={}, is_whole=is_whole)
        return dataclasses.replace(self, tables=tables)

    def keeping(self) -> RankReader:
        """Return a reader that keeps what it reads, for works that read the same."""
        return dataclasses.replace(self, known=dict(self.known or {}))

    def once(self, what: object, read: Callable[[], Answer]) -> Answer:
        """Return what `read` gives; the same as before where `what` was read from these rows and kept.

        A `Fact` of all rows of the rank is the same as in another command, too.
        """
        if self.known is None:
            return read()
        key = what, self._selection
        if key not in self.known:
            facts = self.facts if self.keeps_facts else None
            self.known[key] = _kept(facts, what, read) if facts and isinstance(what, Fact) else read()
        answer: Answer = self.known[key]
        return answer

    @property
    def keeps_facts(self) -> bool:
        """Whether facts of what it reads, all rows of the rank, are kept for other commands."""
        return self.facts is not None and not self.tables.only and not self.tables.values

    @cached_property
    def _selection(self) -> tuple[object, ...]:
        """Say which rows are read, for keys of what is known."""
        cut = tuple((base, *sorted(columns.items())) for base, columns in sorted(self.tables.values.items()))
        return tuple(sorted(self.tables.only.items())), cut, self.tables.is_whole

    def selects(self, base: str) -> bool:
        """Whether a window or filter leaves rows of a table out, or cuts them; that of a merged window did."""
        return base in self.tables.only or base in self.tables.values or outside_of(base) in self.tables.columns

    @property
    def cuts(self) -> bool:
        """Whether a window may have cut events; that of a merged window may."""
        return bool(self.tables.values) or outside_of("rocpd_kernel_dispatch") in self.tables.columns

    def rows(self, select: str, parameters: Parameters = None) -> list[Row]:
        """Run a SELECT and return all rows; errors as for `Session.execute`."""
        with self.lend() as database:
            return database.rows(select, parameters, self.tables)

    def counts(self, of: Sequence[tuple[str, str]]) -> list[int]:
        """Return numbers of rows, all by one statement, which needs no view.

        Args:
            of: tables that the rank has, each with SQL on their columns that rows have to meet; empty: all rows count.
        """
        each = (f"(SELECT COUNT(*) FROM {self.tables.rows(base)}{f' WHERE {sql}' if sql else ''})" for base, sql in of)
        return list(self.rows(f"SELECT {', '.join(each)}")[0]) if of else []

    def table_rows(self) -> dict[str, int]:
        """Return table -> number of rows, of all tables that the rank has."""
        return dict(zip(self.rank.tables, self.counts([(base, "") for base in self.rank.tables]), strict=True))

    def stream(self, select: str, parameters: Parameters = None, size: int = 100_000) -> Iterator[list[Row]]:
        """Run a SELECT and yield its rows in lists of up to `size`, so that memory stays flat."""
        with self.lend() as database:
            cursor = database.execute(select, parameters, (self.tables,))
            while rows := cursor.fetchmany(size):
                yield rows


def _kept(facts: FactsOfRank, fact: Fact, derive: Callable[[], Answer]) -> Answer:
    """Return the value of a fact as it is kept, else as it is derived now."""
    value: Answer | None = facts.known(fact)
    if value is None:
        value = derive()
        facts.derived(fact, value)
    return value


class MapRanks(Protocol):
    """Does work for each rank and yields the answers in rank order; `work` and the answers can be pickled."""

    def __call__(self, work: Callable[[RankReader], Answer]) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank."""


Work: TypeAlias = Callable[[RankReader], Any]
"""Work on a rank: a module-level function or a `functools.partial` of one."""


@frozen
class Works:
    """Several works on one rank as one, whose answers are theirs, in order; they share what they read.

    Args:
        works: each as `map_ranks` takes it. What one raises is its answer.
    """

    works: tuple[Work, ...]

    def __call__(self, reader: RankReader) -> list[Any]:
        """Do the works."""
        keeping, answers = reader.keeping(), []
        for work in self.works:
            try:
                answers.append(work(keeping))
            except Exception as error:  # noqa: BLE001 (the others go on)
                answers.append(error)
        return answers


STATEMENT_BYTES = 4 << 20
"""`brief_bytes` of one or two short statements."""

OPERATIONS_BYTES = 1 << 20
"""`brief_bytes` of reading the operations of a rank."""


@frozen
class RankTask(Generic[Answer]):
    """Work on one rank, as a value that can be sent to another process.

    Args:
        rank: the rank.
        tables: its tables as a connection to its own file names them.
        work: a module-level function, or a `functools.partial` of one.
        facts: keeps facts of ranks; None: nothing does.
        brief_bytes: size of a file below which the work takes less time than another process takes to open the file.
        known: what works before this one read of the rank; brief work adds to it. None: nothing is kept.
    """

    rank: Rank
    tables: RankTables
    work: Callable[[RankReader], Answer]
    facts: FactStore | None = None
    brief_bytes: int = 0
    known: dict[object, Any] | None = field(default=None, compare=False)


DoTasks: TypeAlias = Callable[[Sequence[RankTask[Answer]]], Generator[Answer, None, None]]
"""Does tasks, and yields their answers in order."""


class _NotKeptError(BaseException):
    """Work asks for what is not kept; no work takes it for an error of its own."""


@frozen
class _KeptAlone:
    """The facts of a rank, none of which can be derived."""

    facts: FactsOfRank

    def known(self, fact: Fact) -> Any:
        value = self.facts.known(fact)
        if value is None:
            raise _NotKeptError
        return value

    def derived(self, fact: Fact, value: object) -> None:
        self.facts.derived(fact, value)

    def keep(self) -> None:
        self.facts.keep()


def _lend_nothing() -> AbstractContextManager[ShareDatabase]:
    raise _NotKeptError


def with_kept(tasks: Sequence[RankTask[Answer]], do: DoTasks[Answer]) -> Generator[Answer, None, None]:
    """Yield the answers of tasks, in order: here while facts alone give them, from the first that lacks one on by `do`.

    Starting processes takes longer than reading what is kept of many ranks.
    """
    kept = 0
    for task in tasks:
        if (facts := task.facts.of(task.rank) if task.facts else None) is None:
            break
        try:
            answer = task.work(RankReader(task.rank, task.tables, _lend_nothing, {}, _KeptAlone(facts)))
        except _NotKeptError:
            break
        facts.keep()
        yield answer
        kept += 1
    if kept < len(tasks):
        yield from do(tasks[kept:])


def run_task(task: RankTask[Answer], lend: Lend = borrow) -> Answer:
    """Do the work of a task on its rank's file; errors name the file."""
    facts = task.facts.of(task.rank) if task.facts else None
    with lend(Share(task.rank.opening, 0, (task.rank.number,), (task.tables,))) as database:
        known = {} if facts and task.known is None else task.known
        reader = RankReader(task.rank, task.tables, lambda: contextlib.nullcontext(database), known, facts)
        answer = task.work(reader if known is None or task.brief_bytes else reader.keeping())
    if facts:
        facts.keep()
    return answer
