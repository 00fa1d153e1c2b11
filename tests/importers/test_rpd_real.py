"""Real RPD traces: what a vLLM server and a matrix product left, against sums over their own tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rocpd
from tests.conftest import private


@pytest.fixture(scope="module")
def job() -> Iterator[rocpd.Session]:
    """Rank 0 is the matrix product, rank 1 the server."""
    with rocpd.connect(private("rpd/*", 2)) as session:
        yield session


def by_rank(job: rocpd.Session, view: str, what: str) -> list[tuple[object, ...]]:
    return job.sql(f"SELECT {what} FROM {view} GROUP BY rank ORDER BY rank").fetchall()


def test_nothing_is_lost(job: rocpd.Session) -> None:
    assert [note for note in job.notes if "not imported" in note] == []


def test_every_row_has_its_place(job: rocpd.Session) -> None:
    assert by_rank(job, "regions", "COUNT(*)") == [(125,), (14_736,)]
    assert by_rank(job, "samples", "COUNT(*)") == [(15,), (81,)]
    assert by_rank(job, "kernels", "COUNT(*), SUM(duration)") == [(29, 26_399_795), (8_948, 407_137_675)]
    copies = "memory_copies WHERE category = 'MEMORY_COPY'"
    assert by_rank(job, copies, "COUNT(*), SUM(duration)") == [(55, 157_512_821), (1_176, 9_487_406)]
    assert by_rank(job, "memory_copies WHERE name = 'MEMORY_SET'", "COUNT(*), SUM(duration)") == [(1, 5_440)]
    assert by_rank(job, "graph_launches", "COUNT(*), SUM(kernel_dispatch_count)") == [(20, 7_720)]


def test_categories(job: rocpd.Session) -> None:
    rows = job.sql("SELECT category, COUNT(*) FROM regions WHERE rank = 1 GROUP BY 1 ORDER BY 1").fetchall()
    assert rows == [
        ("HIP_RUNTIME_API", 2_830),
        ("MARKER_CORE_RANGE_API", 69),
        ("TORCH_OPERATOR", 11_816),
        ("TRACER_OVERHEAD", 21),
    ]


def test_grids_are_work_items(job: rocpd.Session) -> None:
    """Grids of hipLaunchKernel are blocks in the trace, those of hipExtModuleLaunchKernel work-items."""
    rows = job.sql("""SELECT R.name, MIN(K.grid_x), MAX(K.grid_x), SUM(K.grid_x % K.workgroup_x)
        FROM kernels K JOIN regions R ON R.guid = K.guid AND R.stack_id = K.stack_id
        WHERE K.rank = 1 AND R.name <> 'hipGraphLaunch' GROUP BY 1 ORDER BY 1""").fetchall()
    assert rows == [("hipExtModuleLaunchKernel", 151_552, 1_060_864, 0), ("hipLaunchKernel", 128, 8_388_608, 0)]


def test_gpu_time_is_that_of_the_trace(job: rocpd.Session) -> None:
    assert job.sql("SELECT sum(duration) FROM operations WHERE rank = 1").fetchall() == [(416_625_081,)]


def test_monitors_are_weighted_by_time(job: rocpd.Session) -> None:
    ((mean,),) = job.sql("""SELECT SUM(P.counter_value * (json_extract(S.extdata, '$.end') - S.timestamp))
        / SUM(json_extract(S.extdata, '$.end') - S.timestamp)
        FROM samples S JOIN pmc_events P ON P.event_id = S.event_id AND P.guid = S.guid
        WHERE S.rank = 1 AND S.name = 'sclk GPU 0'""").fetchall()
    assert round(mean) == 1_055
