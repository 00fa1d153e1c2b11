"""Sessions that differ in what counts: on the same files, each unchanged by the others."""

from __future__ import annotations

import pytest

import rocpd
from rocpd.base import ClosedError, RocpdError, UsageError
from tests.build import TraceBuilder
from tests.conftest import OpenJob

NAMES = "SELECT name FROM kernels ORDER BY start, rank"


@pytest.fixture
def session(open_job: OpenJob) -> rocpd.Session:
    """Rank 0 runs a at 10 and b at 30, rank 1 the same 5 ns later."""
    ranks = (
        TraceBuilder(n, pid=10 + n).kernel("a", 10 + 5 * n, 20 + 5 * n).kernel("b", 30 + 5 * n, 40 + 5 * n)
        for n in range(2)
    )
    return open_job(*ranks)


def names(session: rocpd.Session) -> str:
    return "".join(name for (name,) in session.sql(NAMES))


def test_within_and_where_make_sessions_and_change_none(session: rocpd.Session) -> None:
    early = session.within(rocpd.Window(end=25))
    rank_0 = session.where(rocpd.Filters(ranks="0"))
    only_b = rank_0.where(rocpd.Filters(kernel="b"))

    assert [names(s) for s in (session, early, rank_0, only_b)] == ["aabb", "aa", "ab", "b"]
    assert [len(s.ranks) for s in (session, early, rank_0, only_b)] == [2, 2, 1, 1]
    assert [s.window is None for s in (session, early, rank_0, only_b)] == [True, False, True, True]
    assert type(only_b) is rocpd.Session


def test_they_use_the_same_connections(session: rocpd.Session) -> None:
    early = session.within(rocpd.Window(end=25))
    with session.reader(0).lend() as database:
        connection = database.connection
    with early.reader(0).lend() as database:
        assert database.connection is connection


def test_filters_narrow_and_windows_replace_each_other(session: rocpd.Session) -> None:
    late = session.within(rocpd.Window(end=25)).within(rocpd.Window(start=28))
    assert names(late) == "bb"
    assert names(late.where(rocpd.Filters(ranks="1"))) == "b"
    assert names(late.within(rocpd.Window())) == "aabb"
    assert names(session.where(rocpd.Filters(kernel="a|b")).where(rocpd.Filters(exclude_kernel="a"))) == "bb"


def test_filters_and_windows_hold_in_either_order(session: rocpd.Session) -> None:
    window, filters = rocpd.Window(start=12, end=41, inclusive=False), rocpd.Filters(kernel="b")
    both_orders = session.where(filters).within(window), session.within(window).where(filters)
    assert [selected.sql("SELECT name, rank FROM kernels").fetchall() for selected in both_orders] == [[("b", 0)]] * 2


@pytest.mark.parametrize("strategy", ["rows", "attached"])
def test_every_strategy_sees_the_selection(strategy: str, session: rocpd.Session) -> None:
    selected = session.where(rocpd.Filters(kernel="b")).within(rocpd.Window(start=33))
    assert selected.execute("SELECT name, rank FROM kernels", strategy=strategy).fetchall() == [("b", 0), ("b", 1)]
    assert session.execute("SELECT name FROM kernels WHERE rank = 0", strategy=strategy).fetchall() == [("a",), ("b",)]


def test_the_files_belong_to_the_session_that_opened_them(session: rocpd.Session) -> None:
    with session.within(rocpd.Window(end=25)) as early:
        assert names(early) == "aa"
    assert names(session) == "aabb"
    late = session.within(rocpd.Window(start=28))
    session.close()
    with pytest.raises(ClosedError):
        late.sql(NAMES)


def test_empty_and_invalid_selections_are_refused(session: rocpd.Session) -> None:
    with pytest.raises(RocpdError, match="no event passes the filters"):
        session.where(rocpd.Filters(kernel="nothing"))
    with pytest.raises(UsageError, match="ends before it starts"):
        session.within(rocpd.Window(start=30, end=20))
    assert names(session) == "aabb"


def test_offsets_of_clocks_that_are_known(open_job: OpenJob, tmp_path: object) -> None:
    files = [rank.opening.path for rank in open_job(TraceBuilder(0, host="n0").kernel("a", 100, 110)).ranks]
    with rocpd.connect(files, clock_offsets={"n0": 50}) as moved:
        assert moved.time_range == (150, 160)
        assert moved.notes == ["time: clocks shifted by n0 +50 ns"]
        assert names(moved.within(rocpd.Window(start=90, end=120))) == "a"  # as views show times
    with pytest.raises(UsageError, match="clock offset for nowhere: no rank ran there"):
        rocpd.connect(files, clock_offsets={"nowhere": 1})


def test_a_window_keeps_its_time_line_when_ranks_go(open_job: OpenJob) -> None:
    """Two clocks that start 1000 ns apart: the window was resolved on both, and stays in place for one of them."""
    ranks = (TraceBuilder(n, host=f"n{n}").kernel("a", 100 + 1000 * n, 200 + 1000 * n) for n in range(2))
    windowed = open_job(*ranks).within(rocpd.Window(start=150))
    assert windowed.where(rocpd.Filters(ranks="1")).alignment.offsets[1] == -1000
    assert windowed.job.of_ranks(windowed.ranks[1:], keep_alignment=False).alignment.offsets == {1: 0}
