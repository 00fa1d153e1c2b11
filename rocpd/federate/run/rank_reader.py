"""Reads one rank: every table and view holds the selected rows of that rank only.

Work on a reader is the same in this process and in other processes, which open the rank's file themselves.
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
from rocpd.base.packing import packed, unpacked
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.shares import Lend, Share, ShareDatabase, borrow
from rocpd.schema.render import RankTables, outside_of


@frozen
class Fact:
    """A value that is derived of all rows of a rank, under a name that means the same in every process.

    Args:
        name: name of the fact.
        version: version of its definition: raise it when the same rows give another value.
        types: types of its parts, besides columns, texts, numbers and containers of these; frozen, or named tuples.
        asked: texts and numbers that the value depends on besides the rows.
        is_small: the value takes so little beside the rows that a job holds it from its first pass over ranks.
    """

    name: str
    version: int
    types: tuple[type, ...]
    asked: tuple[object, ...] = ()
    is_small: bool = False

    def of(self, *asked: object) -> Fact:
        """Return the fact for these texts and numbers."""
        return dataclasses.replace(self, asked=asked)


class FactsOfRank(Protocol):
    """The kept facts of one rank, or of several together, for the duration of work on them."""

    def known(self, fact: Fact) -> Any:
        """Return the value of a fact, None if it is not kept."""

    def derived(self, fact: Fact, value: object) -> None:
        """Note the value of a fact, for `keep`."""

    def keep(self) -> None:
        """Keep the noted values."""


class FactStore(Protocol):
    """Keeps facts of ranks; can be sent to another process."""

    def of(self, *ranks: Rank) -> FactsOfRank | None:
        """Return the kept facts of a rank, or of several together; None if no facts of them can be kept."""

    def close(self) -> None:
        """Release all opened files; idempotent."""


@frozen
class RankReader:
    """Reads one rank.

    Args:
        rank: the rank.
        tables: its tables as a connection to its own file names them.
        lend: lends a connection to that file.
        known: results read before, by their key, where several works on the rank share them; None: none are kept.
        facts: keeps facts for other commands; None: facts are not kept.
    """

    rank: Rank
    tables: RankTables
    lend: Callable[[], AbstractContextManager[ShareDatabase]]
    known: dict[Any, Any] | None = None
    facts: FactsOfRank | None = None

    def whole(self) -> RankReader:
        """Return a reader of all rows of the rank, regardless of window and filters."""
        return self._of_any_time({})

    def unwindowed(self) -> RankReader:
        """Return a reader of the rows that pass the filters, regardless of the window."""
        return self._of_any_time(self.tables.filtered)

    def _of_any_time(self, only: Mapping[str, str]) -> RankReader:
        """Return a reader of rows in and outside the window; this one if it leaves nothing out."""
        now, is_whole = self.tables, self.tables.has_outside
        if (now.only, now.values, now.filtered, now.is_whole) == (only, {}, {}, is_whole):
            return self
        tables = dataclasses.replace(now, only=only, values={}, filtered={}, is_whole=is_whole)
        return dataclasses.replace(self, tables=tables)

    def keeping(self) -> RankReader:
        """Return a reader that keeps its results, for works that read the same."""
        return dataclasses.replace(self, known=dict(self.known or {}))

    def once(self, what: object, read: Callable[[], Answer]) -> Answer:
        """Return the result of `read`, or the kept one where the key `what` was read from these rows before.

        The value of a `Fact` of all rows of the rank may also come from another command.
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
        """Whether it reads all rows of the rank, so that their facts are kept for other commands."""
        return self.facts is not None and not self.tables.only and not self.tables.values

    @cached_property
    def _selection(self) -> tuple[object, ...]:
        """The selected rows as a value, for keys of kept results."""
        cut = tuple((base, *sorted(columns.items())) for base, columns in sorted(self.tables.values.items()))
        return tuple(sorted(self.tables.only.items())), cut, self.tables.is_whole

    def selects(self, base: str) -> bool:
        """Whether a window or filter leaves rows of a table out, or cuts them; in a file merged from a window, True."""
        return base in self.tables.only or base in self.tables.values or outside_of(base) in self.tables.columns

    @property
    def cuts(self) -> bool:
        """Whether a window may have cut events; in a file merged from a window, True."""
        return bool(self.tables.values) or outside_of("rocpd_kernel_dispatch") in self.tables.columns

    def rows(self, select: str, parameters: Parameters = None) -> list[Row]:
        """Run a SELECT and return all rows; errors as for `Session.execute`."""
        with self.lend() as database:
            return database.rows(select, parameters, self.tables)

    def counts(self, of: Sequence[tuple[str, str]]) -> list[int]:
        """Return the numbers of rows of tables, by one statement, which needs no view.

        Args:
            of: tables of the rank, each with an SQL condition on its columns; an empty condition: all rows count.
        """
        each = (f"(SELECT COUNT(*) FROM {self.tables.rows(base)}{f' WHERE {sql}' if sql else ''})" for base, sql in of)
        return list(self.rows(f"SELECT {', '.join(each)}")[0]) if of else []

    def table_rows(self) -> dict[str, int]:
        """Return table -> number of rows, for all tables of the rank."""
        return dict(zip(self.rank.tables, self.counts([(base, "") for base in self.rank.tables]), strict=True))

    def stream(self, select: str, parameters: Parameters = None, size: int = 100_000) -> Iterator[list[Row]]:
        """Run a SELECT and yield its rows in lists of up to `size`, so that memory stays flat."""
        with self.lend() as database:
            cursor = database.execute(select, parameters, (self.tables,))
            while rows := cursor.fetchmany(size):
                yield rows


def _kept(facts: FactsOfRank, fact: Fact, derive: Callable[[], Answer]) -> Answer:
    """Return the kept value of a fact, else the value derived now."""
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
    """Several works on one rank as one work, which returns their answers in order; they share the data read.

    Args:
        works: each as `map_ranks` takes it. An exception that a work raises is its answer.
    """

    works: tuple[Work, ...]

    def __call__(self, reader: RankReader) -> list[Any]:
        """Do the works."""
        answers = []
        for work in self.works:
            try:
                answers.append(work(reader))
            except Exception as error:  # noqa: BLE001 (the other works go on)
                answers.append(error)
        return answers


@frozen
class Carrying(Generic[Answer]):
    """Work that answers also with the small facts that it derived, packed, for later work in any process.

    Args:
        work: the work.
    """

    work: Callable[[RankReader], Answer]

    def __call__(self, reader: RankReader) -> tuple[Answer, bytes]:
        """Do the work."""
        answer, read = self.work(reader), (reader.known or {}).items()
        return answer, packed({key: value for key, value in read if isinstance(key[0], Fact) and key[0].is_small})


STATEMENT_BYTES = 4 << 20
"""`brief_bytes` of work that consists of one or two short statements."""

OPERATIONS_BYTES = 1 << 20
"""`brief_bytes` of work that reads the operations of a rank."""


@frozen
class RankTask(Generic[Answer]):
    """Work on one rank, as a value that can be sent to another process.

    Args:
        rank: the rank.
        tables: its tables as a connection to its own file names them.
        work: a module-level function, or a `functools.partial` of one.
        facts: keeps facts of ranks; None: facts are not kept.
        brief_bytes: size of a file below which the work takes less time than another process takes to open the file.
        known: results that earlier works read of the rank; brief work adds to them. None: none are kept.
        carried: small facts that an earlier work derived, packed.
    """

    rank: Rank
    tables: RankTables
    work: Callable[[RankReader], Answer]
    facts: FactStore | None = None
    brief_bytes: int = 0
    known: dict[object, Any] | None = field(default=None, compare=False)
    carried: bytes = field(default=b"", repr=False, compare=False)


DoTasks: TypeAlias = Callable[[Sequence[RankTask[Answer]]], Generator[Answer, None, None]]
"""Does tasks and yields their answers in order."""


class _NotKeptError(BaseException):
    """Work needs rows, as a fact is not kept; a BaseException, so that no work catches it as its own error."""


def _lend_nothing() -> AbstractContextManager[ShareDatabase]:
    raise _NotKeptError


def with_kept(tasks: Sequence[RankTask[Answer]], do: DoTasks[Answer]) -> Generator[Answer, None, None]:
    """Yield the answers of tasks, in order: from kept facts alone while they suffice, the others by `do`.

    Starting processes takes longer than reading the kept facts of many ranks.
    """
    kept = 0
    for task in tasks:
        if (facts := task.facts.of(task.rank) if task.facts else None) is None:
            break
        try:
            answer = task.work(RankReader(task.rank, task.tables, _lend_nothing, {}, facts))
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
        known = unpacked(task.carried) if task.carried else task.known
        known = {} if known is None else known
        reader = RankReader(task.rank, task.tables, lambda: contextlib.nullcontext(database), known, facts)
        answer = task.work(reader if task.brief_bytes else reader.keeping())
    if facts:
        facts.keep()
    return answer
