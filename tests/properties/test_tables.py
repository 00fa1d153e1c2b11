"""Laws of tables of analyses: order, merge, windows of merges, times that start elsewhere, ranks without events."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.rank import By, Options
from rocpd.federate.merge import merge
from rocpd.schema.rules.events import POINTS, SPANS
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.registry import SUMMARIES
from tests.build import TraceBuilder
from tests.properties.test_laws import EXAMPLES, LAWS, job

TABLES = (
    "idle",
    "idle-calls",
    "budget",
    "trace",
    "copy-sizes",
    "copy-pairs",
    "slowest-copies",
    "allocation-sites",
    "memory-steps",
    "queue-depth",
    "transfers",
    "communication",
    "collectives",
    "steps",
)
pytestmark = pytest.mark.soak(50)
TABLE_LAWS = settings(LAWS, max_examples=EXAMPLES // 2)
PROFILES = st.sampled_from(["gemm", "llm", "hpc"])
JOBS = st.builds(job, st.integers(1, 3), PROFILES, st.integers(0, 30), st.booleans())
SOUND = st.builds(job, st.integers(1, 3), PROFILES, st.integers(0, 30), st.just(False))
PLACES = st.sampled_from([None, By.RANK, By.HOST, By.STEP, By.MARKER])


def tables(session: rocpd.Session, by: By | None = None, names: Iterable[str] = TABLES) -> dict[str, Any]:
    """Return the rows of all tables that the job has."""
    plan = {name: wanted for name, wanted in planned(names).items() if by is None or by in SUMMARIES[name].by}
    rows: dict[str, Any] = {}
    for name, answered in run_planned(Reading(session, Options(by)), plan):
        try:
            rows |= {table.name: (table.columns, table.fetchall()) for table in answered}
        except RocpdError as error:
            rows[name] = error.message
    return rows


@TABLE_LAWS
@given(JOBS, PLACES, st.randoms(use_true_random=False))
def test_order_and_merging_change_nothing(files: tuple[Path, ...], by: By | None, random: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch, rocpd.connect(files) as session:
        merged = Path(scratch) / "merged.db"
        cut = random.randint(1, len(files))
        shuffled = random.sample(files, len(files))
        with rocpd.connect(shuffled[:cut]) as some:
            merge(some, merged)
        with rocpd.connect([*shuffled[cut:], merged]) as other:
            assert tables(other, by) == tables(session, by)


@TABLE_LAWS
@given(JOBS, PLACES, st.integers(0, 60), st.integers(10, 40), st.booleans())
def test_a_window_of_a_merge_is_that_of_the_job(
    files: tuple[Path, ...], by: By | None, low: int, length: int, clip: bool
) -> None:
    window = rocpd.Window(f"{low}%", f"{low + length}%", clip=clip)
    with tempfile.TemporaryDirectory() as scratch, rocpd.connect(files) as session:
        merge(session, Path(scratch) / "merged.db")
        with rocpd.connect(Path(scratch) / "merged.db") as other:
            assert tables(other.within(window), by) == tables(session.within(window), by)


@TABLE_LAWS
@given(SOUND, PLACES, st.integers(-(10**6), 10**15))
def test_times_may_start_elsewhere(files: tuple[Path, ...], by: By | None, away: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        moved = [_moved(file, Path(scratch) / file.name, away) for file in files]
        with rocpd.connect(files) as session, rocpd.connect(moved) as other:
            assert tables(other, by) == tables(session, by)


def _moved(source: Path, target: Path, away: int) -> Path:
    """Copy a file with all its times moved [ns]."""
    shutil.copy(source, target)
    with apsw.Connection(str(target)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for base, columns in {
            **dict.fromkeys(SPANS, ("start", "end")),
            **dict.fromkeys(POINTS, ("timestamp",)),
        }.items():
            for name in names:
                if name.startswith(f"{base}_"):
                    times = ", ".join(f'"{column}" = "{column}" + {away}' for column in columns)
                    connection.execute(f'UPDATE "{name}" SET {times}')
    connection.close()
    return target


@TABLE_LAWS
@given(SOUND, st.sampled_from([None, By.STEP, By.MARKER]))
def test_a_rank_without_events_adds_nothing(files: tuple[Path, ...], by: By | None) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        empty = TraceBuilder(0xFFFFFF, host="empty", environment={"PMI_RANK": "99"}).write(Path(scratch) / "empty.db")
        with rocpd.connect(files) as session, rocpd.connect([*files, empty]) as other:
            names = [name for name in TABLES if name != "trace"]  # that counts ranks
            assert tables(other, by, names) == tables(session, by, names)
