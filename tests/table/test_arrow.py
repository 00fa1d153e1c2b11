"""Rows as Arrow and pandas: column types that keep every digit."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import Row
from rocpd.table.arrow import to_arrow, to_pandas
from tests.build import TraceBuilder
from tests.conftest import OpenJob

HUGE = 9223372036854775807


@pytest.mark.parametrize(
    ("values", "kind", "given"),
    [
        ([1, HUGE, -HUGE - 1], pa.int64(), None),
        ([1, None, HUGE], pa.int64(), None),
        ([0.5, None, math.inf], pa.float64(), None),
        ([1, 0.5, None], pa.float64(), [1.0, 0.5, None]),
        ([HUGE, 0.5], pa.string(), ["9223372036854775807", "0.5"]),
        (["a", None, ""], pa.string(), None),
        ([b"\x00", None], pa.binary(), None),
        (["é", b"\xff"], pa.binary(), ["é".encode(), b"\xff"]),
        ([1, "a", None], pa.string(), ["1", "a", None]),
        ([1, b"\xff"], pa.string(), ["1", "ff"]),
        ([None, None], pa.null(), None),
        ([], pa.null(), None),
    ],
)
def test_column_types(values: list[Any], kind: pa.DataType, given: list[Any] | None) -> None:
    table = to_arrow(["x"], [(value,) for value in values])
    assert table.schema.field("x").type == kind
    assert table.column("x").to_pylist() == (values if given is None else given)


def test_pandas_keeps_every_digit_beside_null() -> None:
    frame = to_pandas(to_arrow(["a", "b", "c", "d"], [(1, HUGE, 0.5, None), (2, None, None, None)]))
    assert [str(kind) for kind in frame.dtypes] == ["int64", "Int64", "float64", "object"]
    assert frame["b"][0] == HUGE
    assert frame["b"][1] is pd.NA
    assert frame["d"].isna().all()


def test_equal_names_stay() -> None:
    frame = to_pandas(to_arrow(["n", "n"], [(1, "a"), (2, "b")]))
    assert list(frame.columns) == ["n", "n"]
    assert frame.to_numpy().tolist() == [[1, "a"], [2, "b"]]


def test_no_rows_and_no_columns() -> None:
    assert to_pandas(to_arrow(["a", "b"], [])).shape == (0, 2)
    assert to_pandas(to_arrow([], [])).shape == (0, 0)


VALUES = st.none() | st.integers(-(2**63), HUGE) | st.floats(allow_nan=False) | st.text(max_size=3) | st.binary()


@given(st.lists(st.tuples(st.none() | st.integers(-(2**63), HUGE), st.none() | st.text(), VALUES), max_size=8))
def test_nothing_is_lost(rows: list[Row]) -> None:
    table = to_arrow(["i", "t", "any"], rows)
    assert table.num_rows == len(rows)
    for column in (0, 1):
        assert table.column(column).to_pylist() == [row[column] for row in rows]
    assert [value is None for value in table.column(2).to_pylist()] == [row[2] is None for row in rows]
    frame = to_pandas(table)
    assert [None if pd.isna(value) else int(value) for value in frame["i"]] == [row[0] for row in rows]


def test_results_of_a_session(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 10, 20).kernel("relu", 30, 31, tid=None))
    result = session.sql("SELECT name, duration, tid FROM kernels ORDER BY start")
    assert result.arrow().to_pylist() == [
        {"name": "gemm", "duration": 10, "tid": 16},
        {"name": "relu", "duration": 1, "tid": None},
    ]
    assert [str(kind) for kind in result.df().dtypes][1:] == ["int64", "Int64"]


def test_sums_above_64_bits_keep_every_digit() -> None:
    table = to_arrow(("a",), [(2**63,), (None,), (-5,)])
    assert table.column("a").to_pylist() == [Decimal(2**63), None, Decimal(-5)]
    assert to_pandas(table)["a"].iloc[0] == 2**63
