"""The one file that a worker keeps open between tasks."""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.federate.merge import merge
from rocpd.federate.open.opening import Opening
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.run.shares import ConnectionCache, Pool, borrow, run_lending
from rocpd.session import Session
from tests.build import TraceBuilder


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [TraceBuilder(n, pid=n).kernel("gemm", 10, 20 + n).write(tmp_path / f"{n}.db") for n in range(3)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are opened, in order."""
    seen: list[Path] = []
    connect = Opening.connect

    def noted(opening: Opening) -> apsw.Connection:
        seen.append(opening.path)
        return connect(opening)

    monkeypatch.setattr(Opening, "connect", noted)
    return seen


def _connection(session: Session, rank: int) -> apsw.Connection:
    with borrow(session.job.share_of[rank]) as database:
        database.connection.execute("SELECT 1").fetchall()
        return database.connection


def test_a_file_is_read_through_the_connection_by_which_it_was_identified(
    files: list[Path], opened: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "merged.db"
    with rocpd.connect(files) as session:
        merge(session, out)
    for inputs in ([out], files):
        opened.clear()
        with rocpd.connect(inputs) as session:
            assert [durations for _, durations in session.map_ranks(_durations)] == [[10], [11], [12]]
        assert opened == inputs


def test_connections_to_files_that_are_not_used_are_closed(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[apsw.Connection] = []
    keep = Pool.keep

    def noted(pool: Pool, opening: Opening, connection: apsw.Connection) -> None:
        kept.append(connection)
        keep(pool, opening, connection)

    monkeypatch.setattr(Pool, "keep", noted)
    twice = shutil.copy(files[0], tmp_path / "copy.db")
    with rocpd.connect([files[0], twice]) as session:
        assert len(session.ranks) == 1
        assert [_is_open(each) for each in kept] == [True, False]
    with pytest.raises(rocpd.RocpdError):
        rocpd.connect([files[1], tmp_path / "none.db"], skip_bad=False)
    assert not any(map(_is_open, kept))


def _is_open(connection: apsw.Connection) -> bool:
    try:
        connection.execute("SELECT 1").fetchall()
    except apsw.ConnectionClosedError:
        return False
    return True


def _durations(reader: RankReader) -> list[int]:
    return [duration for (duration,) in reader.rows("SELECT duration FROM kernels")]


def test_a_file_is_kept_until_another_is_read(files: list[Path]) -> None:
    with rocpd.connect(files) as session:
        cache = ConnectionCache()
        first, again, other = (
            run_lending(cache.lend, functools.partial(_connection, session), rank) for rank in (0, 0, 1)
        )
        assert first is again
        with pytest.raises(apsw.ConnectionClosedError):
            first.execute("SELECT 1")
        other.execute("SELECT 1").fetchall()
        cache.close()
        cache.close()
        with pytest.raises(apsw.ConnectionClosedError):
            other.execute("SELECT 1")


def test_nothing_is_kept_outside_of_tasks(files: list[Path]) -> None:
    with rocpd.connect(files) as session, pytest.raises(apsw.ConnectionClosedError):
        _connection(session, 0).execute("SELECT 1")


def test_nothing_is_kept_after_an_error_or_in_the_middle_of_a_statement(files: list[Path], opened: list[Path]) -> None:
    with rocpd.connect(files) as session, contextlib.closing(ConnectionCache()) as cache:
        share, left = session.job.share_of[0], list[Iterator[object]]()
        opened.clear()
        with pytest.raises(KeyError), cache.lend(share):
            raise KeyError
        with cache.lend(share) as database:
            left.append(iter(database.connection.execute("SELECT 1 FROM sqlite_master")))
            next(left[0])
        with cache.lend(share):
            assert opened == [files[0]] * 3
        with cache.lend(share):
            assert opened == [files[0]] * 3


def test_a_session_keeps_none_in_the_middle_of_a_statement(files: list[Path], opened: list[Path]) -> None:
    with rocpd.connect(files) as session:
        pool, share = session.job.files.pool, session.job.share_of[0]
        with pool.lend(share) as database:
            left = iter(database.connection.execute("SELECT 1 FROM sqlite_master"))
            next(left)
        opened.clear()
        for _ in range(2):
            with pool.lend(share):
                assert opened == [files[0]]


def test_two_at_a_time_have_connections_of_their_own(files: list[Path]) -> None:
    with rocpd.connect(files) as session, contextlib.closing(ConnectionCache()) as cache:
        share = session.job.share_of[0]
        with cache.lend(share) as first, cache.lend(share) as second:
            assert first is not second
