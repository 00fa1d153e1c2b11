"""The twelve real files: every view as their own stored one, alone and together, and not a byte touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from tests.conftest import State, state_of
from tests.real.rows import STORED, Rows, multiset, select, stored
from tests.soak import sample

AGGREGATES = {"top", "top_kernels", "busy"}


@pytest.fixture(scope="module")
def before(real_files: tuple[Path, ...]) -> State:
    return state_of(real_files[0].parent)


@pytest.fixture(scope="module")
def together(real_files: tuple[Path, ...], before: State) -> Iterator[rocpd.Session]:
    """All twelve as one session; afterwards they are as they were."""
    with rocpd.connect(real_files) as session:
        yield session
    assert state_of(real_files[0].parent) == before


def test_what_the_job_holds(together: rocpd.Session) -> None:
    assert len(together.ranks) == 12
    counts = {
        "kernels": 3612,
        "rocpd_kernel_dispatch": 3612,
        "regions": 7488,
        "rocpd_region": 7488,
        "rocpd_arg": 31404,
        "events_args": 31404,
        "region_args": 31404,
        "memory_copies": 0,
        "processes": 12,
    }
    assert {name: together.sql(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in counts} == counts
    assert together.sql("SELECT sum(total_calls) FROM top_kernels").fetchall() == [(3612,)]
    assert together.sql("SELECT sum(percent) FROM kernel_summary").fetchall() == [(pytest.approx(100),)]


def test_pids_repeat_and_ranks_do_not(together: rocpd.Session) -> None:
    assert max(Counter(rank.pid for rank in together.ranks).values()) == 2
    by_rank = "SELECT rank, count(*) FROM kernels GROUP BY rank ORDER BY rank"
    assert together.sql(by_rank).fetchall() == [(number, 301) for number in range(12)]
    joined = "SELECT count(*) FROM processes p JOIN kernels k USING (guid)"
    assert together.sql(joined).fetchall() == [(3612,)]


def test_runs_of_different_days_are_not_drawn_as_simultaneous(together: rocpd.Session) -> None:
    """Runs of one clock stand as far apart as they were."""
    for domain in together.clock_domains:
        shifts = {together.alignment.shift(rank) for rank in domain.ranks}
        assert len(shifts) == 1
    raw = together.sql('SELECT min(start), max("end") FROM kernels').fetchall()[0]
    span = together.time_range
    assert span is not None
    assert span[1] - span[0] > 24 * 3600 * 10**9
    assert raw[1] - raw[0] > 24 * 3600 * 10**9


@pytest.mark.soak
@pytest.mark.parametrize("name", STORED)
def test_each_view_equals_the_stored_one(name: str, real_files: tuple[Path, ...], before: State) -> None:
    for path in sample(real_files, 3, [*STORED].index(name) % 3):
        with rocpd.connect(path) as session, stored(path) as raw:
            assert multiset(session.sql(select(name))) == multiset(raw.execute(select(name))), path.name
    assert state_of(real_files[0].parent) == before


@pytest.mark.parametrize("name", ["top", "top_kernels"])
def test_averages_are_the_stored_ones_with_their_fraction(name: str, real_files: tuple[Path, ...]) -> None:
    """The stored views divide whole nanoseconds; ours keep the fraction."""
    sql = f"SELECT name, average, total_calls FROM {name}"
    for path in real_files:
        with rocpd.connect(path) as session, stored(path) as raw:
            ours, stored_rows = ({row[0]: row[1:] for row in rows} for rows in (session.sql(sql), raw.execute(sql)))
        assert ours.keys() == stored_rows.keys()
        for key, (average, calls) in ours.items():
            assert average - stored_rows[key][0] == pytest.approx(0, abs=0.001), key
            assert average >= stored_rows[key][0] - 1e-9
            assert calls == stored_rows[key][1]


@pytest.mark.parametrize("name", [name for name in STORED if name not in AGGREGATES])
def test_together_they_hold_what_each_holds(name: str, together: rocpd.Session, real_files: tuple[Path, ...]) -> None:
    expected: Rows = Counter()
    for path in real_files:
        with stored(path) as raw:
            expected += multiset(raw.execute(select(name)))
    assert multiset(together.sql(select(name))) == expected


def test_busy_together_is_that_of_each(together: rocpd.Session, real_files: tuple[Path, ...]) -> None:
    expected: Rows = Counter()
    for path in real_files:
        with stored(path) as raw:
            expected += multiset(raw.execute(select("busy")))
    assert expected.total() == 12
    assert multiset(together.sql(select("busy"))) == expected


def test_the_first_answer_about_runs_of_different_days(real_files: tuple[Path, ...]) -> None:
    """No straggler is named among processes that never met."""
    with rocpd.connect(real_files) as session:
        job, *others = [finding.text for finding in session.summary("overview").findings]
    assert job == f"{len(real_files)} separate runs, not one job, on 7 nodes; AMD Instinct MI300X; 4 commands"
    assert not [text for text in others if "straggler" in text]
    assert others[2] == "run 7: 1 rank; 70.6 ms of GPUs: 6 % compute, 94 % idle; ./bmm_IGLP_trans"
    assert [text for text in others if "% of it in calls that copy" in text]
