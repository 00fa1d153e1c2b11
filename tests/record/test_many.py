"""Many processes and threads at once: every event is there, once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.record.build import Build
from tests.record.runs import CODE, check_closed, databases, environment, metadata, probe, rows
from tests.soak import SOAK, sized

PROCESSES, THREADS = 8, 4
EVENTS = sized(6000, 1_000_000)


@pytest.mark.soak(150)
def test_all_events_of_all_processes(built: Build, tmp_path: Path) -> None:
    command = [str(built.program("probe")), "threads", str(THREADS), str(EVENTS)]
    folder = tmp_path / "out"
    running = [
        subprocess.Popen(command, env=environment(folder, OMPI_COMM_WORLD_RANK=str(rank))) for rank in range(PROCESSES)
    ]
    assert [process.wait() for process in running] == [CODE] * PROCESSES
    files = databases(folder)
    assert [file.name.split("-")[0] for file in files] == [f"rank{rank}" for rank in range(PROCESSES)]
    for file in files:
        check_closed(file)
        sql = "SELECT COUNT(*), COUNT(DISTINCT id), COUNT(DISTINCT event_id), COUNT(DISTINCT tid) FROM rocpd_region"
        assert rows(file, sql) == [(THREADS * EVENTS, THREADS * EVENTS, THREADS * EVENTS, THREADS)]
        assert rows(file, "SELECT COUNT(*), COUNT(DISTINCT stack_id) FROM rocpd_event") == [(THREADS * EVENTS,) * 2]
        inner = (
            "SELECT COUNT(*) FROM markers i JOIN markers o ON o.stack_id = i.parent_stack_id AND o.tid = i.tid "
            "AND o.start <= i.start AND o.\"end\" >= i.\"end\" WHERE i.name = 'inner' AND o.name = 'outer'"
        )
        if not SOAK:
            assert rows(file, inner) == [(THREADS * EVENTS // 2,)]
    guids = [metadata(file)["guid"] for file in files]
    assert len(set(guids)) == PROCESSES
    shutil.rmtree(folder)  # gigabytes in a long run, and pytest keeps the folders of three runs


def test_full_buffers_block(built: Build, tmp_path: Path) -> None:
    env = {"ROCPD_BUFFER_KB": "256", "ROCPD_OVERFLOW": "block"}
    done = probe(built, tmp_path, "burst", "200000", env=env)
    assert (done.returncode, done.stderr) == (CODE, "")
    (file,) = databases(tmp_path)
    assert rows(file, "SELECT COUNT(*) FROM rocpd_region") == [(200000,)]
    assert metadata(file)["recorder_lost_events"] == "0"


def test_full_buffers_drop_and_say_so(built: Build, tmp_path: Path) -> None:
    env = {"ROCPD_BUFFER_KB": "256", "ROCPD_OVERFLOW": "drop"}
    done = probe(built, tmp_path, "burst", "1000000", env=env)
    assert done.returncode == CODE
    (file,) = databases(tmp_path)
    check_closed(file)
    recorded = int(rows(file, "SELECT COUNT(*) FROM rocpd_region")[0][0])
    lost = int(metadata(file)["recorder_lost_events"])
    assert recorded + lost == 1000000
    assert lost > 0
    assert f"{lost} events were lost" in done.stderr
