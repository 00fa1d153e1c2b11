"""A simulated job, sound and with faults, in Perfetto's own engine and as CSV, against tables and readable views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.simulator import JobOptions, simulate
from tests.convert.conftest import read_csv, to_perfetto
from tests.perfetto_engine import Engine

_ANNOTATION = {"kernel_dispatch": "dispatch_id", "memory_copy": "destination", "memory_allocate": "level"}


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "faults"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=4, nodes=2, steps=3, faults=request.param))
    with rocpd.connect(folder / "job", skip_bad=True, align="none") as opened:
        yield opened


@pytest.fixture(scope="module")
def engine(session: rocpd.Session, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return to_perfetto(session, tmp_path_factory.mktemp("trace"), annotate_args=True, annotate_pmc=True)


def lasting(session: rocpd.Session, table: str) -> tuple[int, int]:
    """Count the rows of a table that have a place in time, and sum up their durations."""
    sql = f'SELECT COUNT(*), IFNULL(SUM(MAX("end" - start, 0)), 0) FROM rocpd_{table} WHERE start > 0'
    (row,) = session.execute(sql).fetchall()
    return int(row[0]), int(row[1])


@pytest.mark.parametrize("table", _ANNOTATION)
def test_every_row_is_a_slice_with_its_duration(engine: Engine, session: rocpd.Session, table: str) -> None:
    has = f"EXTRACT_ARG(arg_set_id, 'debug.{_ANNOTATION[table]}') IS NOT NULL"

    copies = "" if table != "memory_copy" else " AND EXTRACT_ARG(arg_set_id, 'debug.source') IS NOT NULL"
    assert engine.rows(f"SELECT COUNT(*), SUM(dur) FROM recorded WHERE {has}{copies}") == [lasting(session, table)]
    assert lasting(session, table)[0] > 0


def test_all_slices_and_instants_together(engine: Engine, session: rocpd.Session) -> None:
    parts = [lasting(session, table) for table in ("region", "graph_launch", *_ANNOTATION)]
    (samples,) = session.execute(
        'SELECT COUNT(*) FROM samples S WHERE "timestamp" > 0'
        f" AND ((rank, event_id) IN ({_valued(session)})) IS NOT TRUE"
    ).fetchall()

    assert engine.rows("SELECT COUNT(*), SUM(dur) FROM recorded") == [
        (sum(count for count, _ in parts) + samples[0], sum(duration for _, duration in parts))
    ]


def test_each_launched_dispatch_and_copy_has_one_flow(engine: Engine, session: rocpd.Session) -> None:
    calls = "SELECT rank, stack_id FROM regions WHERE start > 0 AND stack_id <> 0"
    sql = " UNION ALL ".join(
        f"SELECT COUNT(*) FROM {view} WHERE start > 0 AND (rank, stack_id) IN ({calls})"
        for view in ("kernels", "memory_copies")
    )
    wanted = sum(row[0] for row in session.execute(sql))

    assert wanted > 0
    assert engine.one("SELECT COUNT(*) FROM flow") == wanted


def test_every_rank_has_its_own_group_in_order(engine: Engine, session: rocpd.Session) -> None:
    written = [row[0] for row in engine.rows("SELECT name FROM track WHERE parent_id IS NULL ORDER BY name")]
    assert written == ["job · 4 ranks", *(f"rank {rank.number} · {rank.hostname}" for rank in session.ranks)]


def test_csv_files_have_the_rows_of_the_views(session: rocpd.Session, tmp_path: Path) -> None:
    paths = FORMATS["csv"].write(session, ConvertOptions(tmp_path))
    rows = {path.stem.removeprefix("out_"): read_csv(path) for path in paths}

    for name, view in {
        "kernel_trace": "kernels",
        "memory_copy_trace": "memory_copies",
        "scratch_memory_trace": "scratch_memory",
        "counter_collection": "counters_collection",
        "marker_api_trace": "markers",
        "hip_api_trace": "(SELECT * FROM regions WHERE category GLOB 'HIP_*')",
        "memory_allocation_trace": "(SELECT * FROM memory_allocations WHERE level IS NOT 'SCRATCH')",
    }.items():
        wanted = session.execute(f'SELECT guid, start, "end" FROM {view} ORDER BY rank, start, "end"').fetchall()
        written = [(row["Guid"], row["Start_Timestamp"], row["End_Timestamp"]) for row in rows.get(name, [])]
        order = {rank.guid: i for i, rank in enumerate(session.ranks)}
        written.sort(key=lambda row: (order[row[0]], int(row[1]), int(row[2])))
        assert written == [tuple(map(str, row)) for row in wanted], name


def _valued(session: rocpd.Session) -> str:
    """Return the SELECT of the events that carry plain counter values."""
    parts = (
        f"SELECT {part.rank}, event_id FROM {part.name('rocpd_pmc_event')}"
        + (" WHERE sample_id IS NULL" if "sample_id" in part.columns["rocpd_pmc_event"] else "")
        for part in session.attached_tables
        if "rocpd_pmc_event" in part.columns
    )
    return " UNION ALL ".join(parts)
