"""Lets SQL read tables that are calculated when a statement does so. Never calculates one itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.schema.calculated import CALCULATED, CalculatedTable
from rocpd.sqlite import apsw
from rocpd.types import Row

Calculate: TypeAlias = Callable[[Mapping[str, str], "str | None"], Iterable[Row]]
"""Returns the rows of a table, by its arguments; of the narrowing column, perhaps only those with one value."""

_FULL, _NARROWED = 1e9, 1e8  # costs: SQLite reads everything else first, and this once


def add_calculated(connection: apsw.Connection, answers: Mapping[str, Calculate]) -> None:
    """Add calculated tables to a connection.

    Args:
        connection: what statements run on.
        answers: table -> what calculates its rows.
    """
    for name, calculate in answers.items():
        module: Any = _Module(CALCULATED[name], calculate)  # has what a table needs that nobody creates
        connection.create_module(name, module, use_bestindex_object=True, eponymous_only=True, read_only=True)


@frozen
class _Module:
    """What SQLite asks for a table (https://sqlite.org/vtab.html#eponymous_virtual_tables)."""

    table: CalculatedTable
    calculate: Calculate

    def Connect(self, _connection: apsw.Connection, *_names: str) -> tuple[str, _Calculated]:  # noqa: N802
        return self.table.declaration, _Calculated(self.table, self.calculate)


class _Calculated:
    """A table as one connection sees it; what was calculated is kept, for joins read it again and again."""

    def __init__(self, table: CalculatedTable, calculate: Calculate) -> None:
        self._table, self._calculate = table, calculate
        self._known: dict[tuple[str | None, ...], list[Row]] = {}

    def BestIndexObject(self, index: apsw.IndexInfo) -> bool:  # noqa: N802
        """Take arguments, and one value of the narrowing column; False: an argument is not known yet."""
        names = [column.name for column in self._table.columns]
        taken = {names.index(self._table.narrowing): self._table.narrowing}
        taken |= dict(enumerate(self._table.arguments, len(names)))
        given: dict[str, int] = {}
        for number in range(index.nConstraint):
            name = taken.get(index.get_aConstraint_iColumn(number))
            is_equal = index.get_aConstraint_op(number) == apsw.SQLITE_INDEX_CONSTRAINT_EQ
            if name is None or name in given or not is_equal or index.get_aConstraint_collation(number) != "BINARY":
                continue
            if not index.get_aConstraint_usable(number):
                if name in self._table.arguments:
                    return False
                continue
            given[name] = number
            index.set_aConstraintUsage_argvIndex(number, len(given))
            index.set_aConstraintUsage_omit(number, name in self._table.arguments)
        index.idxStr = " ".join(given)
        index.estimatedCost = _NARROWED if self._table.narrowing in given else _FULL
        return True

    def Open(self) -> _Cursor:  # noqa: N802
        return _Cursor(self)

    def Disconnect(self) -> None:  # noqa: N802
        self._known.clear()

    def rows(self, given: Mapping[str, apsw.SQLiteValue]) -> list[Row]:
        """Return the rows, each followed by the arguments.

        Raises:
            UsageError: an argument has an unknown value.
        """
        arguments = {name: self._argument(name, given.get(name)) for name in self._table.arguments}
        narrowed = given.get(self._table.narrowing)
        value = None if self._table.narrowing not in given else str(narrowed)
        key = (*arguments.values(), value)
        if key not in self._known:
            self._known[key] = [(*row, *arguments.values()) for row in self._calculate(arguments, value)]
        return self._known[key]

    def _argument(self, name: str, value: apsw.SQLiteValue) -> str:
        values = self._table.arguments[name]
        if value is None:
            return values[0]
        if value not in values:
            raise UsageError(f"{self._table.name}({value!r}): there is no such {name}", f"one of {', '.join(values)}")
        return str(value)


class _Cursor:
    def __init__(self, table: _Calculated) -> None:
        self._table = table
        self._rows: Sequence[Row] = ()
        self._place = 0

    def Filter(self, _number: int, names: str, values: Sequence[Any]) -> None:  # noqa: N802
        self._rows, self._place = self._table.rows(dict(zip(names.split(), values, strict=True))), 0

    def Eof(self) -> bool:  # noqa: N802
        return self._place >= len(self._rows)

    def Next(self) -> None:  # noqa: N802
        self._place += 1

    def Rowid(self) -> int:  # noqa: N802
        return self._place

    def Column(self, number: int) -> Any:  # noqa: N802
        return self._place if number < 0 else self._rows[self._place][number]

    def Close(self) -> None:  # noqa: N802
        self._rows = ()
