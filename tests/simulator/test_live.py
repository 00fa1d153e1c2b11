"""Jobs that are written in real time: the same rows in the end, in the order of their time on the way there."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rocpd.base import UsageError
from rocpd.schema.live_state import FAILED, read_state
from rocpd.simulator import JobOptions, simulate

LOST = ("id", "event_id", "guid")
"""Columns that number rows, in the order of their writing, which differs."""


def rows(path: Path) -> dict[str, Counter[Any]]:
    """Return the rows of each table of a file, without their numbers."""
    connection = sqlite3.connect(path)
    tables = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {}
    for table in tables:
        names = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[1] not in LOST]
        if table != "sqlite_sequence":
            listed = ", ".join(f'"{name}"' for name in names)
            found[table] = Counter(connection.execute(f'SELECT {listed} FROM "{table}"'))
    connection.close()
    return found


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_finished_file_has_the_rows_of_one_written_at_once(journal: str, tmp_path: Path) -> None:
    at_once = simulate(JobOptions(tmp_path / "at-once", ranks=2, steps=2, seed=4))
    live = simulate(JobOptions(tmp_path / "live", ranks=2, steps=2, seed=4, live=100.0, live_journal=journal))
    assert sorted(path.name for path in (tmp_path / "live").iterdir()) == [path.name for path in at_once]
    assert {path.name: rows(path) for path in live} == {path.name: rows(path) for path in at_once}


def test_rows_come_in_the_order_of_their_ends(tmp_path: Path) -> None:
    (path,) = simulate(JobOptions(tmp_path, ranks=1, steps=2, live=100.0))
    connection = sqlite3.connect(path)
    for table in ("region", "kernel_dispatch", "memory_copy"):
        view = f'SELECT "end" FROM rocpd_{table} ORDER BY id'
        ends = [end for (end,) in connection.execute(view)]
        assert ends == sorted(ends)
    connection.close()


def test_a_full_disk_ends_the_rows_of_one_rank_alone(tmp_path: Path) -> None:
    simulate(JobOptions(tmp_path, ranks=2, steps=4, live=50.0, incident="disk-full=1"))
    (state,) = tmp_path.glob("*.live")
    assert read_state(state).flags & FAILED
    lengths = sorted(sum(found.total() for found in rows(path).values()) for path in tmp_path.glob("*.db"))
    assert lengths[0] < 0.8 * lengths[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"faults": True}, "live: not with faults"),
        ({"incident": "meteor"}, "incident meteor: unknown"),
        ({"incident": "stall=9"}, "incident stall=9: not a step"),
        ({"incident": "stall", "rccl": "none"}, "incident stall: needs recorded calls of RCCL"),
        ({"live_journal": "paper"}, "live_journal paper: unknown"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        simulate(JobOptions(tmp_path, ranks=2, steps=2, **{"live": 100.0, **options}))
