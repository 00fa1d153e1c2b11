"""Lets SQL read calculated tables, which are calculated when a statement reads them. Never calculates one itself.

Each is an eponymous virtual table (https://sqlite.org/vtab.html#epovtab): it needs no CREATE, and SQLite asks for its
columns when a statement names it. SQLite finds it under any schema without a table of that name. So `summary.kernels`
works although `kernels` is a view, and needs no attached file for the schema, of which SQLite allows few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rocpd.base import Row, UsageError, Value, frozen
from rocpd.base.sqlite import apsw
from rocpd.schema.calculated import Argument, CalculatedTable, bare

_Asked: TypeAlias = tuple[tuple[str, Value], ...]

_WHOLE, _SOME = 1e9, 1e3  # costs: SQLite reads all other tables first, then this one by the values known from them
_INTEGERS = 1 << 63  # whole numbers of SQLite are smaller than this


@frozen
class Calculation:
    """A calculated table on a connection.

    Args:
        table: its name and columns.
        rows: returns its rows, given the value of each argument and of narrowing columns; it may leave out rows with
            other values in these columns.
    """

    table: CalculatedTable
    rows: Callable[[Mapping[str, Value]], Iterable[Row]]


Load: TypeAlias = Callable[[], Calculation]
"""Returns a table; called when a statement first names it, as that imports the module that declares the table."""


def add_calculated(connection: apsw.Connection, loads: Mapping[str, Load]) -> None:
    """Add calculated tables to a connection.

    Args:
        connection: the connection that statements run on.
        loads: name of a table, with its schema if it has one -> function that returns it.
    """
    for name, load in loads.items():
        module: Any = _Module(load)  # has the methods of a table that needs no CREATE
        connection.create_module(bare(name), module, use_bestindex_object=True, eponymous_only=True, read_only=True)


def comparable(value: Value) -> Value:
    """Return a value that equals all values that SQLite may take for equal: texts of numbers become numbers.

    >>> comparable("3") == comparable(3) == comparable(3.0), comparable("gemm"), comparable("nan")
    (True, 'gemm', 'nan')
    """
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    if abs(number) < _INTEGERS and value.strip().lstrip("+-").isdecimal():
        return int(value)  # all its digits
    return value if math.isnan(number) else number


@frozen
class _Module:
    """A module that gives SQLite a table."""

    load: Load

    def Connect(self, _connection: apsw.Connection, *_names: str) -> tuple[str, _Table]:  # noqa: N802
        calculated = self.load()
        return calculated.table.declaration, _Table(calculated)


class _Table:
    """A table as one connection sees it; its rows are kept for further statements, unless the table is large."""

    def __init__(self, calculated: Calculation) -> None:
        self.calculated = calculated
        self.kept = _Kept(calculated)
        self._columns = [column.name for column in calculated.table.columns]
        self._arguments = [argument.name for argument in calculated.table.arguments]

    def BestIndexObject(self, index: apsw.IndexInfo) -> bool:  # noqa: N802
        """Choose the arguments, and the columns compared for equality; False: an argument is not known yet."""
        given: dict[int, int] = {}
        for number in range(index.nConstraint):
            column = index.get_aConstraint_iColumn(number)
            is_equal = index.get_aConstraint_op(number) == apsw.SQLITE_INDEX_CONSTRAINT_EQ
            if column < 0 or column in given or not is_equal or index.get_aConstraint_collation(number) != "BINARY":
                continue
            is_argument = column >= len(self._columns)
            if not index.get_aConstraint_usable(number):
                if is_argument:
                    return False
                continue
            given[column] = number
            index.set_aConstraintUsage_argvIndex(number, len(given))
            index.set_aConstraintUsage_omit(number, is_argument)  # SQLite compares columns itself, too
        index.idxStr = " ".join(map(str, given))
        index.estimatedCost = _SOME if any(column < len(self._columns) for column in given) else _WHOLE
        return True

    def Open(self) -> _Cursor:  # noqa: N802
        return _Cursor(self)

    def Disconnect(self) -> None:  # noqa: N802
        self.kept = _Kept(self.calculated)

    def taken(self, columns: str, values: Sequence[Value]) -> tuple[dict[str, Value], dict[str, Value]]:
        """Return the value of each argument, and the value that each compared column has to equal.

        Args:
            columns: numbers of the arguments and columns with values.
            values: their values.

        Raises:
            UsageError: an argument has an unknown value.
        """
        names = self._columns + self._arguments
        given = dict(zip((names[int(column)] for column in columns.split()), values, strict=True))
        table = self.calculated.table
        arguments = {each.name: _value(table.name, each, given.pop(each.name, None)) for each in table.arguments}
        return arguments, given


def _value(table: str, argument: Argument, value: Value) -> Value:
    if value is None:
        return argument.default
    if argument.values and value not in argument.values:
        known = ", ".join(argument.values)
        raise UsageError(f"{table}({value!r}): there is no such {argument.name}", f"one of {known}")
    return value


class _Kept:
    """Calculated rows, by the arguments and values asked for; joins look them up again and again."""

    def __init__(self, calculated: Calculation) -> None:
        self._calculated = calculated
        self._narrowed: dict[_Asked, _Asked] = {}
        self._rows: dict[_Asked, list[Row]] = {}
        self._places: dict[tuple[_Asked, tuple[str, ...]], dict[Row, list[Row]]] = {}

    def asked(self, arguments: Mapping[str, Value], equal: Mapping[str, Value]) -> _Asked:
        """Return the key of the rows to calculate: rows with a value of a column; all once a second value comes."""
        chosen = tuple(arguments.items())
        narrowing = tuple((name, equal[name]) for name in self._calculated.table.narrowing if name in equal)
        is_first = chosen not in self._rows and self._narrowed.setdefault(chosen, narrowing) == narrowing
        return chosen + narrowing if is_first else chosen

    def rows(self, asked: _Asked, equal: Mapping[str, Value]) -> list[Row]:
        """Return the rows whose columns have the values of `equal`, or values that SQLite may take for equal."""
        if asked not in self._rows:
            self._rows[asked] = list(self._calculated.rows(dict(asked)))
        rows = self._rows[asked]
        if not equal or not rows:
            return rows
        names = tuple(equal)
        if (asked, names) not in self._places:
            columns = [column.name for column in self._calculated.table.columns]
            numbers, places = [columns.index(name) for name in names], dict[Row, list[Row]]()
            for row in rows:
                places.setdefault(tuple(comparable(row[number]) for number in numbers), []).append(row)
            self._places[asked, names] = places
        return self._places[asked, names].get(tuple(map(comparable, equal.values())), [])


class _Cursor:
    """Goes through the rows; those of a large table are streamed at the first reading and kept at the second."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._is_large = table.calculated.table.is_large
        self._kept = _Kept(table.calculated) if self._is_large else table.kept
        self._columns = len(table.calculated.table.columns)
        self._was_read = False
        self._rows: Iterator[Row] = iter(())
        self._row: Row | None = None
        self._arguments: tuple[Value, ...] = ()
        self._place = 0

    def Filter(self, _number: int, columns: str, values: Sequence[Value]) -> None:  # noqa: N802
        arguments, equal = self._table.taken(columns, values)
        asked = self._kept.asked(arguments, equal)
        if self._is_large and not self._was_read:
            self._rows = iter(self._table.calculated.rows(dict(asked)))
        else:
            self._rows = iter(self._kept.rows(asked, equal))
        self._was_read = True
        self._arguments = tuple(arguments.values())
        self._place = -1
        self.Next()

    def Eof(self) -> bool:  # noqa: N802
        return self._row is None

    def Next(self) -> None:  # noqa: N802
        self._row = next(self._rows, None)
        self._place += 1

    def Rowid(self) -> int:  # noqa: N802
        return self._place

    def Column(self, number: int) -> Any:  # noqa: N802
        if number < 0 or self._row is None:
            return self._place
        value: Any = self._row[number] if number < self._columns else self._arguments[number - self._columns]
        is_too_large = isinstance(value, int) and not -_INTEGERS <= value < _INTEGERS
        return float(value) if is_too_large else value  # as SQLite reads a number too large for its integers

    def Close(self) -> None:  # noqa: N802
        self._rows = iter(())
