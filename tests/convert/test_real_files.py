"""The twelve real files in Perfetto's own engine and as CSV, against the readable views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from tests.convert.conftest import read_csv, to_perfetto
from tests.perfetto_engine import Engine


@pytest.fixture(scope="module")
def session(real_files: tuple[Path, ...]) -> Iterator[rocpd.Session]:
    with rocpd.connect(real_files, align="none") as opened:
        yield opened


@pytest.fixture(scope="module")
def engine(session: rocpd.Session, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return to_perfetto(session, tmp_path_factory.mktemp("real"))


@pytest.mark.parametrize(
    ("category", "view"),
    [("s.category = 'kernel_dispatch'", "kernels"), ("s.category != 'kernel_dispatch'", "regions")],
)
def test_every_kernel_and_region_is_there_with_its_time(
    engine: Engine, session: rocpd.Session, category: str, view: str
) -> None:
    wanted = session.execute(
        f'SELECT rank, name, COUNT(*), SUM(MAX("end" - start, 0)), MIN(start) FROM {view} GROUP BY rank, name'
    ).fetchall()
    written = engine.rows(
        f"SELECT rank, name, COUNT(*), SUM(dur), MIN(ts) FROM recorded s WHERE {category} GROUP BY rank, name"
    )

    assert sum(row[2] for row in written) == {"kernels": 3612, "regions": 7488}[view]
    assert sorted((int(label.split()[1]), *rest) for label, *rest in written) == sorted(wanted)


def test_each_dispatch_whose_call_is_there_has_exactly_one_flow(engine: Engine, session: rocpd.Session) -> None:
    sql = "SELECT COUNT(*) FROM kernels WHERE (rank, stack_id) IN (SELECT rank, stack_id FROM regions)"
    launched = session.execute(sql).fetchall()[0][0]

    assert launched == 3612
    per_kernel = "SELECT MIN(n), MAX(n), COUNT(*) FROM (SELECT COUNT(*) n FROM flow GROUP BY slice_in)"
    assert engine.rows(per_kernel) == [(1, 1, launched)]
    assert engine.one("SELECT COUNT(*) FROM flow") == launched
    same = (
        "SELECT COUNT(*) FROM flow f JOIN recorded o ON o.id = f.slice_out JOIN recorded i ON i.id = f.slice_in"
        " WHERE EXTRACT_ARG(o.arg_set_id, 'debug.stack_id') = EXTRACT_ARG(i.arg_set_id, 'debug.stack_id')"
        " AND i.category = 'kernel_dispatch' AND o.category = 'hip_api'"
    )
    assert engine.one(same) == launched


def test_twelve_ranks_with_a_thread_each(engine: Engine) -> None:
    assert engine.one("SELECT COUNT(DISTINCT rank) FROM recorded WHERE track GLOB 'thread *'") == 12
    assert engine.one("SELECT COUNT(DISTINCT rank) FROM recorded WHERE rank GLOB 'rank [01][0-9] · * · *'") == 12


def test_processes_and_threads_on_demand(session: rocpd.Session, tmp_path: Path) -> None:
    engine = to_perfetto(session, tmp_path, processes=True)

    threads = "SELECT COUNT(DISTINCT upid) FROM thread_track tt JOIN thread t USING (utid) WHERE upid IS NOT NULL"
    assert engine.one(threads) == 12
    assert engine.one("SELECT COUNT(DISTINCT upid) FROM process WHERE name GLOB 'rank [01][0-9] · * · *'") == 12
    every = (
        "SELECT COUNT(*) FROM slice WHERE track_id IN (SELECT id FROM thread_track UNION SELECT id FROM process_track)"
    )
    assert engine.one(every) == engine.one("SELECT COUNT(*) FROM slice")


def test_csv_has_the_rows_of_the_views_in_order(session: rocpd.Session, tmp_path: Path) -> None:
    paths = FORMATS["csv"].write(session, ConvertOptions(tmp_path))

    assert [path.name for path in paths] == ["out_kernel_trace.csv", "out_hip_api_trace.csv", "out_agent_info.csv"]
    kernels, calls, agents = map(read_csv, paths)
    sql = 'SELECT guid, name, start, "end", stack_id, tid, queue_id, grid_x FROM kernels ORDER BY rank, start, id'
    columns = (
        "Guid",
        "Kernel_Name",
        "Start_Timestamp",
        "End_Timestamp",
        "Correlation_Id",
        "Thread_Id",
        "Queue_Id",
        "Grid_Size_X",
    )
    assert [tuple(row[c] for c in columns) for row in kernels] == [tuple(map(str, row)) for row in session.execute(sql)]
    sql = 'SELECT guid, category, name, pid, tid, stack_id, start, "end" FROM regions ORDER BY rank, start, id'
    assert [tuple(row.values()) for row in calls] == [tuple(map(str, row)) for row in session.execute(sql)]
    assert len(agents) == 120
    assert {(row["Name"], row["Cu_Count"]) for row in agents if row["Agent_Type"] == "GPU"} == {("gfx942", "304")}
