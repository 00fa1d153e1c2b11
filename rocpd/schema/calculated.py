"""Descriptions of tables that are calculated when a statement reads them: no file has their rows.

SQL reads them like views, on the connection that sees all ranks. Calculates nothing, and knows no table by name.
"""

from __future__ import annotations

from rocpd.base import Value, frozen


@frozen
class CalculatedColumn:
    """One column; `unit` as for views."""

    name: str
    unit: str = ""
    doc: str = ""


@frozen
class Argument:
    """An argument of a table in a statement: in parentheses after the table, by place, or as `WHERE name = value`.

    Args:
        name: name of the hidden column that has its value.
        doc: description of the choice.
        default: its value if the statement gives none.
        values: all possible values; empty: any value.
    """

    name: str
    doc: str = ""
    default: Value = None
    values: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """The meaning of the argument, and the values to choose from, for people."""
        return f"{self.doc}: {', '.join(self.values)}" if self.values else self.doc


@frozen
class CalculatedTable:
    """One table.

    Args:
        name: its name in SQL.
        doc: description of its rows.
        columns: its columns, in order.
        arguments: arguments that statements may give, in order.
        narrowing: columns that make the calculation smaller when a statement asks for one value of them.
        is_large: its rows may not fit into memory: they are read as the statement proceeds.
    """

    name: str
    doc: str
    columns: tuple[CalculatedColumn, ...]
    arguments: tuple[Argument, ...] = ()
    narrowing: tuple[str, ...] = ()
    is_large: bool = False

    @property
    def declaration(self) -> str:
        """The statement that declares the columns to SQLite; they have no types, so that values stay as calculated."""
        names = [f'"{column.name}"' for column in self.columns]
        names += [f'"{argument.name}" HIDDEN' for argument in self.arguments]
        return f"CREATE TABLE x ({', '.join(names)})"


def bare(name: str) -> str:
    """Return the name of a table without its schema.

    >>> bare("summary.budget"), bare("metrics")
    ('budget', 'metrics')
    """
    return name.rpartition(".")[2]
