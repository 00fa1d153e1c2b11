"""The same problem of many ranks is one line: of notes, and of `rocpd info`."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.federate.describe import Problem, describe, shared
from rocpd.federate.limits import Limits
from rocpd.federate.open.opening import FileNote, Opening, lines_of
from tests.build import TraceBuilder
from tests.conftest import Cli


def test_problems_of_several_ranks_are_added_up() -> None:
    problems = [Problem(rank, "rocpd_region: {rows} without a start", rank + 1) for rank in (0, 2)]
    other = Problem(2, "no events with valid timestamps")
    assert [tuple(each) for each in shared([*problems, other])] == [
        ((0, 2), "rocpd_region: 4 rows without a start"),
        ((2,), "no events with valid timestamps"),
    ]


def test_what_is_shared_is_what_ranks_have(tmp_path: Path) -> None:
    for number in range(5):
        trace = TraceBuilder(number, pid=100 + number).kernel("gemm", 1000, 2000)
        for broken in range(number):
            trace.kernel("gemm", 50 + broken, 40)
        trace.write(tmp_path / f"rank{number}.db")
    with rocpd.connect(tmp_path) as session:
        (problem,) = shared(describe(session, ["problems"]).problems)
        by_rank = session.info()["problems"].fetchall()
    assert (problem.ranks, problem.text[:31]) == ((1, 2, 3, 4), "rocpd_kernel_dispatch: 10 rows ")
    assert [(rank, text.split(" row")[0]) for rank, text in by_rank] == [
        (number, f"rocpd_kernel_dispatch: {number}") for number in range(1, 5)
    ]


def test_a_description_opens_files_that_can_not_stay_open_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [TraceBuilder(number).kernel("gemm", 1, 2).write(tmp_path / f"rank{number}.db") for number in range(20)]
    opened: list[Path] = []
    connect = Opening.connect

    def counted(opening: Opening) -> apsw.Connection:
        opened.append(opening.path)
        return connect(opening)

    monkeypatch.setattr(Opening, "connect", counted)
    with rocpd.connect(files, limits=Limits(idle_connections=4)) as session:
        describe(session, ("job", "agents", "tables", "problems"))
        assert len(session.spans) == len(files)
    assert len(opened) <= 3 * len(files)  # to be identified, for spans, and for all else


def test_notes_on_files_are_grouped_by_what_they_say() -> None:
    killed = [FileNote(Path(f"job/r{n}.db"), f"its writer was killed (r{n}.db-wal is left)") for n in range(4)]
    alone = FileNote(Path("job/r9.db"), "empty", left_out=True)
    assert list(lines_of([*killed, alone], 8)) == [
        "4 of 8 files: its writer was killed (…-wal is left): job/r0.db, job/r1.db, job/r2.db …",
        "left out: job/r9.db: empty",
    ]


def test_left_out_files_are_one_line(tmp_path: Path, cli: Cli) -> None:
    TraceBuilder(0).kernel("gemm", 1, 2).write(tmp_path / "good.db")
    for number in range(40):
        (tmp_path / f"bad{number:02}.db").write_bytes(b"")
    said = cli("summary", "kernels", tmp_path, "--skip-bad")
    assert [line for line in said.err.splitlines() if "left out" in line] == [
        f"rocpd: left out: 40 of 41 files: empty: {tmp_path}/bad00.db, {tmp_path}/bad01.db, {tmp_path}/bad02.db …"
    ]


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"cu_count": 304, "mem_banks": [{"heap_type": 1, "size_in_bytes": 192 << 30}]}, (304, 192.0, None)),
        ({"cu_count": "many", "mem_banks": 7, "max_engine_clk_fcompute": 2100}, (None, None, 2100)),
        ([1], (None, None, None)),
        ("no JSON", (None, None, None)),
    ],
)
def test_facts_of_gpus_are_those_of_the_file(details: object, expected: tuple[object, ...], tmp_path: Path) -> None:
    text = details if isinstance(details, str) else json.dumps(details)
    update = f"""UPDATE "rocpd_info_agent{{uuid}}" SET extdata = '{text}' WHERE type = 'GPU'"""
    trace = TraceBuilder(0).kernel("gemm", 1, 2).sql(update)
    with rocpd.connect(trace.write(tmp_path / "a.db")) as session:
        agents = session.info()["agents"]
        assert {row[5:] for row in agents if row[1] == "GPU"} == {expected}
