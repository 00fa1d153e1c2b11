"""Real exports of Nsight Systems against their own tables: counts and sums, launches, ranges, clocks."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import rocpd
from tests.conftest import private

NAMES = ("mfu_2gpu_after", "mfu_2gpu_before")
_PID = "{} >> 24 & 0xFFFFFF"
SOURCES = {
    "kernels": f"SELECT {_PID.format('globalPid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "memory_copies WHERE category = 'MEMORY_COPY'": (
        f"SELECT {_PID.format('globalPid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY"
    ),
    "memory_copies WHERE category = 'MEMORY_SET'": (
        f"SELECT {_PID.format('globalPid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_MEMSET"
    ),
    "regions WHERE category = 'CUDA_RUNTIME_API'": (
        f"SELECT {_PID.format('globalTid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass = 0"
    ),
    "regions WHERE category = 'CUDA_DRIVER_API'": (
        f"SELECT {_PID.format('globalTid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE eventClass = 1"
    ),
    "regions WHERE category = 'GPU_WAIT'": (
        f"SELECT {_PID.format('globalPid')} AS pid, start, end FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    ),
    "regions WHERE category = 'RCCL_API'": (
        f"SELECT {_PID.format('globalTid')} AS pid, start, end FROM NVTX_EVENTS WHERE domainId = 1"
    ),
    "regions WHERE category = 'TORCH_OPERATOR'": (
        f"SELECT {_PID.format('globalTid')} AS pid, start, end FROM NVTX_EVENTS WHERE text GLOB '*, op_id = *'"
    ),
}


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return {path.stem: path for path in private("nsys/*.sqlite", len(NAMES))}


@pytest.fixture
def own(files: dict[str, Path], name: str) -> Iterator[sqlite3.Connection]:
    """Open the export itself."""
    with closing(sqlite3.connect(f"file:{files[name]}?mode=ro", uri=True)) as connection:
        yield connection


@pytest.mark.parametrize("name", NAMES)
def test_each_table_keeps_its_rows_and_time(files: dict[str, Path], name: str, own: sqlite3.Connection) -> None:
    with rocpd.connect(files[name]) as session:
        for place, sql in SOURCES.items():
            expected = own.execute(f"SELECT pid, count(*), sum(end - start) FROM ({sql}) GROUP BY 1 ORDER BY 1")
            found = session.sql(f"SELECT pid, count(*), sum(duration) FROM {place} GROUP BY 1 ORDER BY 1").fetchall()
            assert found == expected.fetchall(), place
        assert [rank.pid for rank in session.ranks] == [pid for pid, _, _ in found]
        (moved,) = session.sql("SELECT sum(size) FROM memory_copies").fetchall()
        sizes = "SELECT bytes FROM CUPTI_ACTIVITY_KIND_{}"
        both = f"{sizes.format('MEMCPY')} UNION ALL {sizes.format('MEMSET')}"
        assert moved == own.execute(f"SELECT sum(bytes) FROM ({both})").fetchone()


@pytest.mark.parametrize("name", NAMES)
def test_launches_sizes_and_times_are_those_of_the_export(
    files: dict[str, Path], name: str, own: sqlite3.Connection
) -> None:
    launched = own.execute(
        "SELECT K.globalPid >> 24 & 0xFFFFFF, count(*), sum(K.gridX * K.blockX), sum(K.start - R.start)"
        " FROM CUPTI_ACTIVITY_KIND_KERNEL K JOIN CUPTI_ACTIVITY_KIND_RUNTIME R"
        " ON R.correlationId = K.correlationId AND R.globalTid >> 24 = K.globalPid >> 24 GROUP BY 1 ORDER BY 1"
    ).fetchall()
    with rocpd.connect(files[name]) as session:
        found = session.sql(
            "SELECT k.pid, count(*), sum(k.grid_x), sum(k.start - r.start) FROM kernels k"
            " JOIN regions r ON r.guid = k.guid AND r.stack_id = k.stack_id GROUP BY 1 ORDER BY 1"
        ).fetchall()
        (first,) = session.sql("SELECT min(start) FROM kernels").fetchall()
    assert found == launched
    ((start, utc, clock),) = own.execute(
        "SELECT min(start), utcEpochNs, systemClockNs FROM CUPTI_ACTIVITY_KIND_KERNEL, TARGET_INFO_SESSION_START_TIME"
    ).fetchall()
    assert first == (start + utc - clock,)


def test_ranges_nest_as_they_were_pushed(files: dict[str, Path]) -> None:
    """NVTX pushes and pops: on a thread one range lies in another or beside it."""
    with rocpd.connect(files["mfu_2gpu_after"]) as session:
        rows = session.sql(
            "SELECT rank, tid, start, end FROM regions WHERE category IN ('TORCH_OPERATOR', 'RCCL_API')"
            " ORDER BY rank, tid, start, end DESC"
        ).fetchall()
    open_ranges: list[tuple[object, ...]] = []
    deepest = 0
    for rank, tid, start, end in rows:
        while open_ranges and (open_ranges[-1][:2] != (rank, tid) or int(str(open_ranges[-1][3])) <= start):
            open_ranges.pop()
        assert not open_ranges or end <= int(str(open_ranges[-1][3]))
        open_ranges.append((rank, tid, start, end))
        deepest = max(deepest, len(open_ranges))
    assert deepest > 3


@pytest.mark.parametrize(("name", "exchanges"), [("mfu_2gpu_after", 30), ("mfu_2gpu_before", 32)])
def test_collectives_find_the_one_clock_of_two_processes(
    files: dict[str, Path], name: str, exchanges: int, tmp_path: Path
) -> None:
    """As if they had run on two machines: the true offset is 0."""
    apart = []
    with rocpd.connect(files[name]) as session:
        assert len(session.alignment.clocks) == 1
        paths = [Path(rank.opening.path) for rank in session.ranks]
        transfers = session.summary("transfers").fetchall()
    for number, path in enumerate(paths):
        apart.append(tmp_path / path.name)
        shutil.copy(path, apart[-1])
        connection = apsw.Connection(str(apart[-1]))
        (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_info_node_*'").fetchall()[
            0
        ]
        connection.execute(f'UPDATE "{table}" SET machine_id = ?', (str(number),))
        connection.close()
    with rocpd.connect(apart) as session:
        _, clock = session.alignment.clocks
    assert (clock.method, clock.collectives) == ("collectives", exchanges)
    assert clock.certain_ns is not None
    assert abs(clock.shift.offset) < clock.certain_ns < 150_000
    assert abs(clock.shift.offset) < 30_000
    assert [(row[1], row[2]) for row in transfers] == [(0, 1)]
