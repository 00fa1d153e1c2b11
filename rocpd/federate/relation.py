"""Tables that SQL can name and no file has, as who adds one writes it: of the whole job, or rank by rank.

A `JobRelation` is what a function says of all ranks together; a `RankRelation` is what a function says of one rank, for
all ranks, one after the other. Never knows one by name: `summary.relations` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rocpd.base import Row, Value, frozen
from rocpd.federate.run.calculated import comparable
from rocpd.schema.calculated import CalculatedColumn, CalculatedTable

if TYPE_CHECKING:
    from rocpd.federate.federation import Federation

Given: TypeAlias = Mapping[str, Value]
"""The value of each argument, and those of narrowing columns that a statement compares with."""

_ROWS = 10_000  # that are Python's values at one time: a rank may have millions
_OF_RANK = (
    CalculatedColumn("guid", "", "rank's GUID, as in views"),
    CalculatedColumn("rank", "", "rank number"),
    CalculatedColumn("hostname", "", "its host"),
)


class Relation(Protocol):
    """A table, and what calculates it."""

    @property
    def table(self) -> CalculatedTable:
        """Its name, columns and arguments."""

    def rows(self, session: Federation, given: Given, /) -> Iterable[Row]:
        """Return its rows in a session; where the job lacks what it needs there are none, and a note says so."""


@frozen
class JobRelation:
    """A table of the whole job.

    Args:
        table: its name, columns and arguments.
        rows: returns its rows, by the session and what the statement chose.
    """

    table: CalculatedTable
    rows: Callable[[Federation, Given], Iterable[Row]]


@frozen
class RankRelation:
    """A table with the rows of each rank, in the order of ranks; `WHERE rank = 3` reads that rank alone.

    Args:
        name: by which SQL names it.
        doc: what it holds.
        columns: those of a rank; `guid`, `rank` and `hostname` follow.
        work: returns the values of each column, as a list or a numpy array: a module-level function, or a
            `functools.partial` of one; it can be pickled.
        prepare: returns what `work` takes beside the reader, by name, from all ranks; None: nothing.
    """

    name: str
    doc: str
    columns: tuple[CalculatedColumn, ...]
    work: Callable[..., Sequence[Any]]
    prepare: Callable[[Federation], Mapping[str, Any]] | None = None

    @property
    def table(self) -> CalculatedTable:
        """Its name and columns."""
        narrowing = ("rank", "guid")
        return CalculatedTable(self.name, self.doc, (*self.columns, *_OF_RANK), narrowing=narrowing, is_large=True)

    def rows(self, session: Federation, given: Given) -> Iterator[Row]:
        """Yield its rows in a session: of one pass of each program, as views have them."""
        read = session.in_rows
        wanted = {name: comparable(value) for name, value in given.items()}
        known = {rank.number: {"rank": rank.number, "guid": comparable(rank.guid)} for rank in read.ranks}
        chosen = tuple(rank for rank in read.ranks if wanted.items() <= known[rank.number].items())
        work = partial(self.work, **self.prepare(read)) if self.prepare and chosen else self.work
        for rank, columns in read.of_ranks(chosen).map_ranks(work) if chosen else ():
            for first in range(0, len(columns[0]), _ROWS):
                parts = (_values(column[first : first + _ROWS]) for column in columns)
                for row in zip(*parts, strict=True):
                    yield (*row, rank.guid, rank.number, rank.hostname)


def _values(column: Any) -> Sequence[Value]:
    """Return the values of a column as Python's, which SQLite takes."""
    values: Sequence[Value] = column.tolist() if hasattr(column, "tolist") else column
    return values
