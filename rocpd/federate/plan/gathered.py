"""The tables in which rows of ranks are gathered: how they are created, filled and dropped."""

from __future__ import annotations

from rocpd.base.sqlite import apsw
from rocpd.federate.plan.steps import Combine, Step
from rocpd.schema.quote import quote_name


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
    """Drop what `create_table` created in temp."""
    if isinstance(step, Combine):
        connection.execute(f"DROP VIEW temp.{quote_name(step.table)}")
    connection.execute(f"DROP TABLE temp.{quote_name(_table_of(step))}")


def insert_text(step: Step) -> str:
    """Return the statement that inserts a row into the table of a step."""
    return f"INSERT INTO {quote_name(_table_of(step))} VALUES ({', '.join('?' * len(step.columns))})"


def _table_of(step: Step) -> str:
    return f"{step.table}__rows" if isinstance(step, Combine) else step.table
