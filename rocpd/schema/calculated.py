"""Tables that are calculated when a statement reads them, as they describe themselves: no file has their rows.

They answer in SQL as views do, on the connection that sees all ranks. Calculates nothing, and knows none by name.
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
        name: of the hidden column that has its value.
        doc: what it chooses.
        default: its value where the statement chooses nothing.
        values: all that it may have; none: any.
    """

    name: str
    doc: str = ""
    default: Value = None
    values: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """The meaning of it, and the values to choose from, for people."""
        return f"{self.doc}: {', '.join(self.values)}" if self.values else self.doc


@frozen
class CalculatedTable:
    """One table.

    Args:
        name: by which SQL names it.
        doc: what it holds.
        columns: in their order.
        arguments: what statements may choose, in their order.
        narrowing: columns for one value of which less is calculated.
        is_large: its rows may not fit into memory: they are read as a statement goes on.
    """

    name: str
    doc: str
    columns: tuple[CalculatedColumn, ...]
    arguments: tuple[Argument, ...] = ()
    narrowing: tuple[str, ...] = ()
    is_large: bool = False

    @property
    def declaration(self) -> str:
        """The statement by which SQLite learns the columns, which have no types: values are as they were calculated."""
        names = [f'"{column.name}"' for column in self.columns]
        names += [f'"{argument.name}" HIDDEN' for argument in self.arguments]
        return f"CREATE TABLE x ({', '.join(names)})"


def bare(name: str) -> str:
    """Return the name of a table without its schema.

    >>> bare("summary.budget"), bare("metrics")
    ('budget', 'metrics')
    """
    return name.rpartition(".")[2]
