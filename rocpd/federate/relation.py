"""Interface of calculated tables, which SQL can name and no file has: of the whole job, or rank by rank.

A function of all ranks together yields the rows of a `JobRelation`; a function of one rank yields those of a
`RankRelation`, for all ranks, one after the other. Knows no table by name: `summary.relations` lists them.
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
"""The value of each argument, and the values that a statement compares narrowing columns with."""

_ROWS = 10_000  # turned into Python values at a time: a rank may have millions
_OF_RANK = (
    CalculatedColumn("guid", "", "rank's GUID, as in views"),
    CalculatedColumn("rank", "", "rank number"),
    CalculatedColumn("hostname", "", "its host"),
)


class Relation(Protocol):
    """A calculated table, and the function that calculates it."""

    @property
    def table(self) -> CalculatedTable:
        """The name, columns and arguments of the table."""

    def rows(self, session: Federation, given: Given, /) -> Iterable[Row]:
        """Return the rows of the table in a session; where the job lacks its data, no rows, and a note says so."""


@frozen
class JobRelation:
    """A table of the whole job.

    Args:
        table: its name, columns and arguments.
        rows: returns its rows, given the session and the values that the statement chose.
    """

    table: CalculatedTable
    rows: Callable[[Federation, Given], Iterable[Row]]


@frozen
class RankRelation:
    """A table with the rows of each rank, in the order of ranks; `WHERE rank = 3` reads that rank alone.

    Args:
        name: its name in SQL.
        doc: description of its rows.
        columns: the columns that `work` returns; `guid`, `rank` and `hostname` follow.
        work: returns the values of each column, as a list or a numpy array: a module-level function, or a
            `functools.partial` of one; it can be pickled.
        prepare: returns the further arguments of `work`, by name, from all ranks; None: it has none.
    """

    name: str
    doc: str
    columns: tuple[CalculatedColumn, ...]
    work: Callable[..., Sequence[Any]]
    prepare: Callable[[Federation], Mapping[str, Any]] | None = None

    @property
    def table(self) -> CalculatedTable:
        """The name and columns of the table."""
        narrowing = ("rank", "guid")
        return CalculatedTable(self.name, self.doc, (*self.columns, *_OF_RANK), narrowing=narrowing, is_large=True)

    def rows(self, session: Federation, given: Given) -> Iterator[Row]:
        """Yield the rows of the table in a session: of one pass of each program, like views."""
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
    """Return the values of a column as Python values, which SQLite accepts."""
    values: Sequence[Value] = column.tolist() if hasattr(column, "tolist") else column
    return values
