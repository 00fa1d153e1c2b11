"""Rows as pyarrow and pandas tables; SQLite's dynamic values get column types only here.

Imported only when Arrow or pandas is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from rocpd.base import Row
from rocpd.table.cell import plain

_EXACT = 1 << 53  # integers up to here are exact as doubles


def to_arrow(columns: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    """Return rows as a Table.

    A column's type is the narrowest that holds its values exactly: int64, double, string, binary; null when all
    values are NULL. Numbers beside text become text; text beside blobs becomes bytes.
    """
    values: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.Table.from_arrays([_array(column) for column in values], names=list(columns))


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a Table as a DataFrame; int64 columns with NULLs become `Int64`, which keeps every digit."""
    series = [_series(column) for column in table.columns]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = pd.Index(table.column_names)
    return frame


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    mapper = {pa.int64(): pd.Int64Dtype()}.get if column.null_count else None
    series: pd.Series[Any] = column.to_pandas(types_mapper=mapper)
    return series


def _array(values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {int}:
        is_long = any(value is not None and not -(1 << 63) <= value < 1 << 63 for value in values)
        return pa.array(values, pa.decimal128(38) if is_long else pa.int64())
    if kinds == {float} or (kinds == {int, float} and _exact_as_double(values)):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if kinds in ({str}, {bytes}):
        return pa.array(values)
    if kinds == {str, bytes}:
        return pa.array([v.encode() if isinstance(v, str) else v for v in values], pa.binary())
    return pa.array([None if v is None else str(plain(v)) for v in values], pa.string())


def _exact_as_double(values: Sequence[Any]) -> bool:
    return all(-_EXACT <= value <= _EXACT for value in values if isinstance(value, int))
