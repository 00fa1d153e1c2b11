"""PyTorch traces made here: what becomes of each kind of event, and what is said of damaged files."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import InputError
from rocpd.importers.json_stream import Event, JsonEvents
from tests.conftest import Cli

BASE = 1_700_000_000_000_000_000


def complete(category: str, name: str, start: float, duration: float, tid: int = 5, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": category, "name": name, "pid": 4, "tid": tid, "ts": start, "dur": duration, "args": args,
    }  # fmt: skip


def written(path: Path, events: list[Any], **facts: Any) -> Path:
    content = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, **facts, "traceEvents": events}
    path.write_text(json.dumps(content, indent=1))
    return path


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with rocpd.connect(path) as session:
        return session.sql(sql).fetchall()


LAUNCH = complete("cuda_runtime", "hipLaunchKernel", 10, 2, correlation=7, **{"External id": 3})
KERNEL = complete("kernel", "gemm", 20.5, 4.25, 0, device=0, stream=0, correlation=7, grid=[2, 1, 1], block=[64, 1, 1])


def test_a_kernel_is_linked_to_its_call_and_sized_in_work_items(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [LAUNCH, KERNEL])
    sql = "SELECT k.name, k.start, k.duration, k.grid_x, k.workgroup_x, r.name, r.corr_id FROM kernels k JOIN regions r"
    assert rows(path, f"{sql} ON r.stack_id = k.stack_id") == [
        ("gemm", BASE + 20_500, 4250, 128, 64, "hipLaunchKernel", 3)
    ]


def test_a_set_is_no_copy_and_no_kernel(tmp_path: Path) -> None:
    on_gpu = {"device": 0, "stream": 3, "correlation": 7, "bytes": 64}
    copy = complete("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 30, 1, 3, **on_gpu)
    path = written(tmp_path / "a", [complete("gpu_memset", "Memset (Device)", 20, 1, 3, **on_gpu), copy])
    sql = "SELECT category, name, size, src_agent_type, dst_agent_type FROM memory_copies ORDER BY start"
    assert rows(path, sql) == [
        ("MEMORY_SET", "MEMORY_SET", 64, None, "GPU"),
        ("MEMORY_COPY", "MEMORY_COPY_DEVICE_TO_HOST", 64, "GPU", "CPU"),
    ]
    assert rows(path, "SELECT count(*) FROM kernels") == [(0,)]


def test_the_size_of_a_copy_may_stand_at_its_call(tmp_path: Path) -> None:
    copy = complete("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 30, 1, 0, device=0, stream=0, correlation=8)
    call = complete("cuda_runtime", "hipMemcpyWithStream", 28, 1, correlation=8, size="2560")
    assert rows(written(tmp_path / "a", [copy, call]), "SELECT size FROM memory_copies") == [(2560,)]


def test_events_without_a_time_are_counted(tmp_path: Path, cli: Cli) -> None:
    odd: list[Any] = [{**LAUNCH, "ts": None}, {**LAUNCH, "ts": "soon"}, {**KERNEL, "name": None}, {"ph": "Q"}, 3]
    said = cli("import", written(tmp_path / "a", [LAUNCH, KERNEL, *odd]), "-d", tmp_path / "job")
    assert said.code == 0
    assert "a: not imported: 3 events without a time or a name" in said.err
    assert "a: not imported: 1 events of the phase 'Q'" in said.err


@pytest.mark.parametrize("times", [{"ts": 9.1e15}, {"dur": 9e15}, {"ts": 1e30}])
def test_times_that_do_not_fit_are_counted(times: dict[str, float], tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path / "a", [LAUNCH, KERNEL, {**KERNEL, "args": {}, **times}])
    assert "a: not imported: 1 events without a time or a name" in cli("import", path, "-d", tmp_path / "job").err
    assert rows(tmp_path / "job", "SELECT start FROM kernels") == [(BASE + 20_500,)]


def test_operations_that_a_file_has_twice_count_once(tmp_path: Path, cli: Cli) -> None:
    again = {**KERNEL, "ts": 30}
    path = written(tmp_path / "a", [LAUNCH, KERNEL, again, KERNEL, again, {**KERNEL, "name": "other"}])
    said = cli("query", "SELECT name, count(*) FROM kernels GROUP BY 1 ORDER BY 1", path, "-f", "csv")
    assert said.out.splitlines()[1:] == ["gemm,2", "other,1"]
    assert "a: not imported: 2 operations of GPUs that the file has twice" in said.err


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [LAUNCH, KERNEL])
    files = [rocpd.import_traces(path, tmp_path / folder)[0] for folder in ("one", "two")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("form", ["object", "array", "open array"])
def test_both_forms_of_the_format_are_read(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a"
    text = json.dumps([LAUNCH, KERNEL])
    path.write_text({"object": f'{{"traceEvents": {text}}}', "array": text, "open array": text[:-1] + ",\n"}[form])
    assert rows(path, "SELECT count(*) FROM kernels") == [(1,)]


def test_pieces_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects inside events, and lists after them, start as events do; texts hold what looks like a place between."""
    odd = complete("cpu_op", '}, {"ph": "X"', 1, 1, nested=[{"name": 1}, {"id": 2}, {"ph": "X"}], text='},{"name":')
    devices = [{"id": number, "name": f"GPU {number}"} for number in range(12)]
    events = [{**odd, "ts": number} for number in range(500)]
    path = written(tmp_path / "a", events, deviceProperties=devices)
    text = json.dumps({"traceEvents": events, "deviceProperties": devices}).encode()
    for block in (100, 1000, 10_000):
        monkeypatch.setattr("rocpd.importers.json_stream._BLOCK", block)
        monkeypatch.setattr("rocpd.importers.json_stream._PIECE", block // 3)
        for content in (path.read_bytes(), text):
            path.write_bytes(content)
            reading = JsonEvents(path, Event, pytest.fail)
            with path.open("rb") as stream:
                assert [event for batch in reading.batches(stream) for piece in batch for event in piece] == events
            assert reading.facts["deviceProperties"] == devices


def test_a_cut_file_gives_its_whole_events(tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path / "a", [{**KERNEL, "ts": number} for number in range(1, 301)])
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    packed = gzip.compress(path.read_bytes())
    (tmp_path / "b").write_bytes(packed[: len(packed) // 2])
    for name, least in (("a", 140), ("b", 30)):
        said = cli("query", "SELECT count(*) FROM kernels", tmp_path / name, "-f", "csv")
        assert said.code == 0
        assert least <= int(said.out.split()[-1]) <= 150
        assert f"{name}: not imported: 1 event at the end of the file, which was cut" in said.err


def test_nan_and_broken_text_are_read_as_far_as_possible(tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path / "a", [LAUNCH, {**KERNEL, "args": {**KERNEL["args"], "occupancy": float("nan")}}])
    path.write_bytes(path.read_bytes().replace(b"gemm", b"ge\xffmm"))
    said = cli("query", "SELECT name, grid_x FROM kernels", path, "-f", "csv")
    assert said.out.splitlines()[1] == "ge\ufffdmm,128"
    assert "NaN, or text that is no Unicode" in said.err


def test_fifty_damaged_files_give_one_line_each(tmp_path: Path) -> None:
    good = written(tmp_path / "good", [LAUNCH, KERNEL] * 20).read_bytes()
    chance = random.Random(3)
    for number in range(50):
        path, content = tmp_path / str(number), bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content))
            content[at : at + chance.randint(0, 9)] = chance.choice((b"", b"{", b"]", b'"', b"\x00\xff", content[:50]))
        path.write_bytes(content)
        notes: list[str] = []
        try:
            rocpd.import_traces(path, tmp_path / f"job{number}", on_note=notes.append)
        except InputError as error:
            notes.append(error.message)
        assert all("\n" not in note and str(path.name) in note for note in notes)
        assert len(notes) <= 3


def rank_of_two(path: Path, rank: int, late: float) -> Path:
    """Four all-reduces of 1024 floats, which end together; `late` moves the clock [us]."""
    events: list[dict[str, Any]] = []
    for number in range(4):
        at = 1000.0 * number + late
        facts: dict[str, Any] = {
            "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2,
            "dtype": "Float", "Process Group Name": "3", "Process Group Ranks": "[0, 1]", "Rank": rank,
        }  # fmt: skip
        end = at + 300 + 2 * rank
        start = at + 100 + 50 * rank
        events += [
            complete("cpu_op", "record_param_comms", at, 50, **facts),
            complete("user_annotation", "nccl:all_reduce", at + 5, 40),
            complete("cuda_runtime", "hipLaunchKernel", at + 10, 5, correlation=number + 1),
            complete("kernel", "ncclDevKernel_Generic_1", start, end - start, 0, device=rank, stream=1,
                     correlation=number + 1),
        ]  # fmt: skip
    return written(path, events, distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})


def test_collectives_of_two_files_are_matched_with_sizes_and_clocks(tmp_path: Path) -> None:
    paths = [rank_of_two(tmp_path / "a", 0, 0), rank_of_two(tmp_path / "b", 1, 777)]
    with rocpd.connect(paths) as session:
        assert [rank.number for rank in session.ranks] == [0, 1]
        rows = session.summary("collectives").fetchall()
        columns = list(session.summary("collectives").columns)
        clock = session.alignment.clocks[1]
        trace = {row[0]: row[1] for row in session.summary("trace")}
    first = dict(zip(columns, rows[0], strict=True))
    assert len(rows) == 4
    assert (first["group"], first["ranks"], first["bytes"]) == ("0-1", 2, 4096)
    assert clock.method == "collectives"
    assert abs(clock.shift.offset + 777_000) < 5000
    assert (trace["ranks"], trace["communicators"]) == ("none", "none")
