"""Whole numbers as arrays, whatever lies in a column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rocpd
from rocpd.read import numbers as module
from rocpd.read.numbers import numbers
from rocpd.types import NULL
from tests.build import TraceBuilder

SELECT = "SELECT id, start, stream_id, grid_size_x FROM rocpd_kernel_dispatch"
COLUMNS = ("start", "stream_id", "grid_size_x")


@pytest.fixture(params=[1, 2, 3, 7, 8192])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "SIZE", request.param)
    return int(request.param)


def _read(path: Path, select: str = SELECT) -> list[list[int]]:
    with rocpd.connect([path]) as session:
        found = list(numbers(session.reader(0), "rocpd_kernel_dispatch", select, COLUMNS))
    return [np.concatenate(parts).tolist() for parts in zip(*found, strict=True)]


def _trace(count: int) -> TraceBuilder:
    trace = TraceBuilder()
    for n in range(count):
        trace.kernel("gemm", 1_700_000_000_000_000_000 + n, 1_700_000_000_000_000_005 + n)
    return trace


@pytest.mark.usefixtures("size")
def test_all_rows_come_in_order(tmp_path: Path) -> None:
    start, stream, _ = _read(_trace(14).write(tmp_path / "a.db"))
    assert start == [1_700_000_000_000_000_000 + n for n in range(14)]
    assert stream == [0] * 14
    assert _read(_trace(0).write(tmp_path / "b.db")) == []


@pytest.mark.usefixtures("size")
def test_ids_far_apart_and_below_zero(tmp_path: Path) -> None:
    trace = _trace(6)
    for old, new in zip(range(1, 7), (-(1 << 63), -5, 0, 1 << 40, (1 << 63) - 2, (1 << 63) - 1), strict=True):
        trace.sql(f"UPDATE rocpd_kernel_dispatch{{uuid}} SET id = {new} WHERE start = 1700000000000000000 + {old - 1}")
    path = trace.write(tmp_path / "a.db")
    assert len(_read(path)[0]) == 6


@pytest.mark.usefixtures("size")
def test_what_is_no_whole_number(tmp_path: Path) -> None:
    trace = _trace(9)
    values = ("7", "2.75", "'many'", "x'00ff'", "1e300", "9e999", "'12'", "-3", "9223372036854775807")
    for n, value in enumerate(values, 1):
        trace.sql(f"UPDATE rocpd_kernel_dispatch{{uuid}} SET grid_size_x = {value} WHERE id = {n}")
    path = trace.write(tmp_path / "a.db")
    _, second, found = _read(path, SELECT.replace("stream_id", "NULLIF(id, 2) AS stream_id"))
    assert found == [7, 2, NULL, NULL, NULL, NULL, 12, -3, 9223372036854775807]
    assert second == [1, NULL, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.usefixtures("size")
def test_ids_that_are_no_key(tmp_path: Path) -> None:
    """Another writer's table, in which an id comes twice: no row is lost."""
    trace = _trace(5)
    for text in (
        "CREATE TABLE other AS SELECT * FROM rocpd_kernel_dispatch{uuid}",
        "DROP TABLE rocpd_kernel_dispatch{uuid}",
        'ALTER TABLE other RENAME TO "rocpd_kernel_dispatch{uuid}"',
        "UPDATE rocpd_kernel_dispatch{uuid} SET id = 2 WHERE id < 4",
    ):
        trace.sql(text)
    assert len(_read(trace.write(tmp_path / "a.db"))[0]) == 5


def test_a_window_holds(tmp_path: Path, size: int) -> None:
    path = _trace(9).write(tmp_path / "a.db")
    with rocpd.connect([path], window=rocpd.Window("+2ns", "+4ns")) as session:
        found = list(numbers(session.reader(0), "rocpd_kernel_dispatch", SELECT, COLUMNS))
        wanted = session.execute("SELECT count(*) FROM rocpd_kernel_dispatch").fetchall()[0][0]
    assert 0 < sum(len(batch[0]) for batch in found) == wanted < 9
    assert max(len(batch[0]) for batch in found) <= size
