"""Valid times: SQL and numpy say the same, of whatever a file holds."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import NULL
from rocpd.schema.rules.events import LAST, VALID_POINT, VALID_START, VALID_TIMES, valid_start, valid_times

TIMES = st.none() | st.sampled_from((-1, 0, 1, 2, LAST)) | st.integers(-(1 << 63), LAST)


def in_sql(start: object, end: object) -> tuple[bool, bool]:
    """Whether SQL takes the start for valid, and both times."""
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE event (start BIGINT, "end" BIGINT)')
    connection.execute("INSERT INTO event VALUES (?, ?)", (start, end))
    [row] = connection.execute(f"SELECT ({VALID_START}) IS 1, ({VALID_TIMES}) IS 1 FROM event")
    connection.close()
    return bool(row[0]), bool(row[1])


def in_numpy(start: int | None, end: int | None) -> tuple[bool, bool]:
    """The same in numpy, where NULL has a stand-in."""
    columns = [np.array([NULL if time is None else time], np.int64) for time in (start, end)]
    return bool(valid_start(columns[0])[0]), bool(valid_times(*columns)[0])


@given(TIMES, TIMES)
def test_sql_and_numpy_agree(start: int | None, end: int | None) -> None:
    assert in_sql(start, end) == in_numpy(start, end)


@pytest.mark.parametrize(
    ("start", "end", "valid"),
    [
        (1, 1, True),
        (5, LAST, True),
        (0, 5, False),
        (-3, 5, False),
        (5, 4, False),
        (5, None, False),
        (None, 5, False),
        ("late", 5, False),
        (5, "never", False),
        (5, b"\xff", False),
        (1, 2.0**70, False),
    ],
)
def test_which_times_are_valid(start: object, end: object, valid: bool) -> None:
    assert in_sql(start, end)[1] is valid


@given(TIMES)
def test_a_point_is_valid_where_a_start_is(time: int | None) -> None:
    connection = sqlite3.connect(":memory:")
    [(valid,)] = connection.execute(f'SELECT ({VALID_POINT}) IS 1 FROM (SELECT ? AS "timestamp")', [time])
    connection.close()
    assert bool(valid) is in_sql(time, None)[0]
