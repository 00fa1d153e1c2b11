"""Faulty jobs: every promised damage is there, and what SQLite recovers is the same each time."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rocpd.schema.versions import VERSIONS, declared_version
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.simulator.faults import EMPTIED, FAULTS, LATE_REGIONS, LATE_TEXT
from rocpd.simulator.job_plan import DISK_STATES
from tests.simulator.jobs import digests, recover, rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A faulty job of eight ranks."""
    folder = tmp_path_factory.mktemp("faulty")
    simulate(JobOptions(folder, ranks=8, nodes=2, steps=2, faults=True))
    return folder


def as_it_lies(path: Path) -> apsw.Connection:
    return apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def test_disk_states(folder: Path) -> None:
    planned = plan(JobOptions(folder, ranks=8, nodes=2, steps=2, faults=True)).ranks
    assert [rank.disk_state for rank in planned] == [*DISK_STATES, *DISK_STATES]
    for rank in planned:
        path = folder / f"rank{rank.number}.db"
        beside = {p.name.removeprefix(path.name) for p in folder.glob(f"{path.name}-*")}
        assert beside == {"leftover_wal": {"-wal"}, "hot_journal": {"-journal"}}.get(rank.disk_state, set())
        wal = rank.disk_state in ("wal_header", "leftover_wal")
        assert path.read_bytes()[18:20] == (b"\2\2" if wal else b"\1\1")
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def test_leftover_log_holds_rows(folder: Path, tmp_path: Path) -> None:
    late = f"SELECT COUNT(*) FROM regions WHERE name = '{LATE_TEXT}'"
    assert rows(as_it_lies(folder / "rank2.db"), late) == [(0,)]
    assert rows(recover(folder / "rank2.db", tmp_path), late) == [(LATE_REGIONS,)]


def test_hot_journal_is_rolled_back(folder: Path, tmp_path: Path) -> None:
    half = """SELECT (SELECT COUNT(*) FROM processes WHERE command = 'half written'),
        (SELECT COUNT(*) FROM rocpd_region WHERE "end" != 0) > 50"""
    assert rows(as_it_lies(folder / "rank3.db"), half) == [(1, 0)]
    recovered = recover(folder / "rank3.db", tmp_path)
    assert rows(recovered, half) == [(0, 1)]
    assert recovered.pragma("integrity_check") == "ok"


def test_recovered_rows_are_the_same_again(folder: Path, tmp_path: Path) -> None:
    again = simulate(JobOptions(tmp_path / "again", ranks=8, nodes=2, steps=2, faults=True))
    for path in again:
        first, second = (recover(p, tmp_path / f"copy{i}") for i, p in enumerate((folder / path.name, path)))
        assert digests(first) == digests(second)


def test_versions_and_empty_tables(folder: Path, tmp_path: Path) -> None:
    for rank in range(8):
        connection = recover(folder / f"rank{rank}.db", tmp_path)
        metadata = [(str(t), str(v)) for t, v in rows(connection, "SELECT tag, value FROM rocpd_metadata")]
        version = declared_version(metadata)
        assert version == VERSIONS[rank % 4]
        assert connection.pragma("integrity_check") == "ok"
        counts = {
            t: rows(connection, f"SELECT COUNT(*) FROM {t}")[0][0]
            for t in EMPTIED.get(version, ())
            if _has(connection, t)
        }
        assert set(counts.values()) <= {0}
    events = [rows(recover(folder / f"rank{r}.db", tmp_path), "SELECT COUNT(*) FROM rocpd_event")[0][0] for r in (5, 6)]
    assert events[0] > 0
    assert events[1] == 0


def _has(connection: apsw.Connection, name: str) -> bool:
    return bool(rows(connection, f"SELECT 1 FROM sqlite_master WHERE name = '{name}'"))


CONDITIONS = {
    "dispatch, NULL thread": "SELECT COUNT(*) FROM rocpd_kernel_dispatch WHERE tid IS NULL",
    "dispatch, NULL queue": "SELECT COUNT(*) FROM rocpd_kernel_dispatch WHERE queue_id IS NULL",
    "dispatch, dangling kernel": "SELECT COUNT(*) FROM kernels WHERE name IS NULL",
    "dispatch, end before start": 'SELECT COUNT(*) FROM kernels WHERE "end" < start',
    "dispatch, zero times": 'SELECT COUNT(*) FROM kernels WHERE start = 0 AND "end" = 0',
    "region, NULL thread": "SELECT COUNT(*) FROM rocpd_region WHERE tid IS NULL",
    "region, dangling name": "SELECT COUNT(*) FROM regions WHERE name IS NULL",
    "region, never ended": 'SELECT COUNT(*) FROM regions WHERE "end" = 0 AND start > 0',
    "regions, equal times": "SELECT COUNT(*) > 1 FROM regions WHERE start = (SELECT MAX(start) FROM regions)",
    "regions, badly nested": """SELECT COUNT(*) FROM regions C JOIN regions P ON P.stack_id = C.parent_stack_id
        WHERE P.start < C.start AND C.start < P.end AND P.end < C.end""",
    "message, not JSON": "SELECT COUNT(*) FROM rocpd_event WHERE NOT json_valid(extdata)",
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_are_damaged(name: str, folder: Path, tmp_path: Path) -> None:
    assert rows(recover(folder / "rank0.db", tmp_path), CONDITIONS[name])[0][0] > 0


@pytest.mark.parametrize("profile", ["llm", "gemm", "hpc"])
def test_every_fault_finds_rows_in_the_smallest_job(profile: str, tmp_path: Path) -> None:
    path = simulate(JobOptions(tmp_path, ranks=1, steps=1, seed=4, profile=profile))[0]
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for fault in FAULTS:
        sql = f"SELECT COUNT(*) FROM {fault.table} WHERE {fault.among}"
        assert rows(connection, sql)[0][0] >= fault.first + fault.rows, fault.name
