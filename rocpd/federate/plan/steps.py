"""Plans as values: how a statement runs over many ranks, in which steps, and the tables that gather their rows.

Imports no SQL parser.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocpd.base import frozen
from rocpd.schema.quote import quote_name

if TYPE_CHECKING:
    from rocpd.base.sqlite import apsw


class Strategy(enum.StrEnum):
    """How a statement runs over many ranks."""

    AUTO = "auto"
    ROWS = "rows"
    AGGREGATES = "aggregates"
    ATTACHED = "attached"
    COLUMNAR = "columnar"


class IndexUse(enum.StrEnum):
    """Whether statements are answered from the index."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


class Unfaithful(Exception):  # noqa: N818 (a reason, not a failure)
    """A statement cannot be taken apart, or only SQLite can answer it; the text gives the reason."""


@frozen
class Step:
    """A step of a plan: the rows of `select` are kept as `table`, with `columns` of SQLite's `types`."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    select: str


@frozen
class Scatter(Step):
    """Every rank runs `select`, and its rows are gathered in rank order.

    `reads`: gathered tables that the statement joins; every rank gets a copy of them. `gives_few_rows`: a rank returns
    few rows. `merges`: how rows with equal groups add up, for each column: `GROUP`, `SUM`, `TOTAL`, `MIN` or `MAX`;
    empty if they do not add up. `by_name`: `select` with names in place of ids of a rank; empty: `select` has none.
    """

    reads: tuple[str, ...] = ()
    gives_few_rows: bool = False
    merges: tuple[str, ...] = ()
    by_name: str = ""


@frozen
class Combine(Step):
    """`select` runs over gathered tables."""


@frozen
class Plan:
    """How a statement runs.

    Args:
        strategy: rows, aggregates or attached.
        reason: why that strategy, for the user.
        sql: the statement with its positional parameters named.
        columns: names of the result's columns, as SQLite gives them; empty when attached.
        steps: tables to gather first.
        final: with strategy rows the SELECT that every rank runs, streamed; with aggregates the SELECT over the
            gathered tables.
        reads: gathered tables that `final` needs in every rank, with strategy rows.
    """

    strategy: Strategy
    reason: str
    sql: str
    columns: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    final: str = ""
    reads: tuple[str, ...] = ()

    @property
    def scattered(self) -> tuple[Scatter, ...]:
        """The steps that every rank runs, in order; with strategy rows the last step returns the result."""
        scatters = tuple(step for step in self.steps if isinstance(step, Scatter))
        if self.strategy is not Strategy.ROWS:
            return scatters
        return (*scatters, Scatter("", self.columns, (), self.final, self.reads))

    def rows(self, ranks: int, small: bool) -> Iterator[tuple[str, str, str]]:
        """Yield a description of the plan: step, where it runs, SQL."""
        yield "strategy", self.strategy.value, self.reason
        if small:
            yield "but", "one connection", "the job is small: the statement runs attached, as written"
        everywhere = f"each of {ranks} ranks"
        for step in self.steps:
            yield f"make {step.table}", everywhere if isinstance(step, Scatter) else "gathered", step.select
        if self.strategy is Strategy.ATTACHED:
            yield "result", "one connection", self.sql
        else:
            yield "result", everywhere if self.strategy is Strategy.ROWS else "gathered", self.final


def create_table(connection: apsw.Connection, step: Step, kind: str = "") -> None:
    """Create the table of a step; for a `Combine`, which replaces a subquery, also the view that statements name.

    SQLite gives a column without a type BLOB affinity, but its expression in the subquery had none: the view selects
    `+column`.
    """
    pairs = list(zip(map(quote_name, step.columns), step.types, strict=True))
    rows = quote_name(_table_of(step))
    items = ", ".join(column if affinity else f"+{column} AS {column}" for column, affinity in pairs)
    connection.execute(f"CREATE {kind}TABLE {rows} ({', '.join(' '.join(pair) for pair in pairs)})")
    if isinstance(step, Combine):
        connection.execute(f"CREATE {kind}VIEW {quote_name(step.table)} AS SELECT {items} FROM {rows}")


def drop_table(connection: apsw.Connection, step: Step) -> None:
    """Drop the table, and any view, that `create_table` created in temp."""
    if isinstance(step, Combine):
        connection.execute(f"DROP VIEW temp.{quote_name(step.table)}")
    connection.execute(f"DROP TABLE temp.{quote_name(_table_of(step))}")


def insert_text(step: Step) -> str:
    """Return the statement that inserts a row into the table of a step."""
    return f"INSERT INTO {quote_name(_table_of(step))} VALUES ({', '.join('?' * len(step.columns))})"


def _table_of(step: Step) -> str:
    return f"{step.table}__rows" if isinstance(step, Combine) else step.table
