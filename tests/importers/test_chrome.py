"""Our own Chrome JSON there and back: the same kernels, regions, markers, copies and links, to the ns."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd

SAME = {
    "kernels": (
        "name, pid, start, end, agent_abs_index, queue_id, stream_id, dispatch_id, grid_x, grid_y, workgroup_x,"
        " lds_size, scratch_size, vgpr_count, accum_vgpr_count, sgpr_count, stack_id"
    ),
    "regions": "category, pid, tid, start, end, stack_id",
    "markers": "name, category, pid, tid, start, end",
    "memory_copies": "name, start, end, size, src_agent_abs_index, dst_agent_abs_index, stream_id, stack_id",
    "memory_allocations": "type, level, start, end, size, agent_abs_index, stack_id",
    "graph_launches": "start, end, graph_exec_id, kernel_dispatch_count, stack_id",
    "regions WHERE category NOT LIKE 'MARKER%'": "name, pid, tid, start, end, stack_id",
    "kernels k JOIN regions r ON r.guid = k.guid AND r.stack_id = k.stack_id": "k.name, k.start, r.name, r.start",
}


def rows(session: rocpd.Session, place: str, offset: int = 0) -> list[tuple[object, ...]]:
    columns = [
        f"{column} - {offset}" if column.endswith(("start", "end")) else column for column in SAME[place].split(", ")
    ]
    rank = "k.rank" if "JOIN" in place else "rank"
    return sorted(session.sql(f"SELECT {rank}, {', '.join(columns)} FROM {place}").fetchall(), key=repr)


@pytest.mark.parametrize("shift", [0, 1_763_000_000_000_000_000])
def test_what_was_exported_comes_back(tmp_path: Path, shift: int) -> None:
    job = tmp_path / "job"
    rocpd.simulate(job, ranks=2, steps=2, seed=43)
    with rocpd.connect(job, clock_offsets={"gpu-node-00": shift}) as session:
        (path,) = session.convert("json", tmp_path / "out")
        before = {place: rows(session, place) for place in SAME}
        moved = session.sql("SELECT min(start) FROM kernels").fetchall()[0][0]
        shown = session.summary("budget").fetchall()
    with rocpd.connect(path) as session:
        offset = session.sql("SELECT min(start) FROM kernels").fetchall()[0][0] - moved
        for place, expected in before.items():
            assert rows(session, place, offset) == expected, place
        assert session.summary("budget").fetchall() == shown
    assert offset == shift
