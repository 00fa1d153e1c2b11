"""csv: rocprofv3's files, byte for byte and cell for cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import AgentIndex, ConvertOptions
from tests.build import TraceBuilder, guid_of
from tests.convert.conftest import ToCsv, read_csv

OpenJob = Callable[..., rocpd.Session]


def test_kernel_trace_bytes(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel('a "b", c', 200, 300, stack=8).kernel("k", 100, 150, stack=7, stream=None))

    (path, _) = FORMATS["csv"].write(session, ConvertOptions(tmp_path, name="x"))

    assert path == tmp_path / "x_kernel_trace.csv"
    guid = guid_of(0)
    header = (
        "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,"
        "Start_Timestamp,End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,"
        "Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
    )
    head, second, first = path.read_text().splitlines()[0:3]
    assert head == ",".join(f'"{name}"' for name in header.split(","))
    assert second.startswith(f'"{guid}","KERNEL_DISPATCH","Agent 1",1,,16,2,')
    assert second.endswith("256,1,1,1024,1,1")
    assert first.startswith(f'"{guid}","KERNEL_DISPATCH","Agent 1",1,0,16,1,')
    assert ',"a ""b"", c",8,200,300,2048,0,' in first


def test_each_kind_of_event_has_its_file(csv_files: ToCsv) -> None:
    files = csv_files(
        TraceBuilder()
        .kernel("k", 10, 20)
        .counter("SQ_WAVES", 0.1)
        .counter("SQ_WAVES", 0.2)
        .region("hipMalloc", 1, 2, stack=5)
        .region("hsa_init", 1, 2, category="HSA_CORE_API")
        .region("ncclAllReduce", 1, 2, category="RCCL_API")
        .region("roctxRangePushA", 3, 9, message="step, 1")
        .sample("roctxMarkA", 5, message="here")
        .copy(30, 40, stack=6)
        .alloc(1, 2, size=64, address=0xABC)
        .alloc(3, 4, kind="FREE", level="VIRTUAL", size=0, agent=None, address=None)
        .alloc(5, 6, level="SCRATCH", size=8)
    )

    calls = [f"{kind}_api_trace" for kind in ("hip", "hsa", "marker", "rccl")]
    memory = ["memory_copy_trace", "memory_allocation_trace", "scratch_memory_trace"]
    assert list(files) == ["kernel_trace", *calls, *memory, "counter_collection", "agent_info"]
    assert [row["Function"] for row in files["marker_api_trace"]] == ["step, 1", "here"]
    assert files["hip_api_trace"][0] == {
        "Guid": guid_of(0), "Domain": "HIP_RUNTIME_API_EXT", "Function": "hipMalloc", "Process_Id": "16",
        "Thread_Id": "16", "Correlation_Id": "5", "Start_Timestamp": "1", "End_Timestamp": "2",
    }  # fmt: skip
    assert files["memory_copy_trace"][0] == {
        "Guid": guid_of(0), "Kind": "MEMORY_COPY", "Direction": "MEMORY_COPY_HOST_TO_DEVICE", "Stream_Id": "0",
        "Source_Agent_Id": "Agent 0", "Destination_Agent_Id": "Agent 1", "Correlation_Id": "6",
        "Start_Timestamp": "30", "End_Timestamp": "40",
    }  # fmt: skip
    allocations = [tuple(row.values())[2:6] for row in files["memory_allocation_trace"]]
    assert allocations == [
        ("MEMORY_ALLOCATION_ALLOCATE", "Agent 1", "64", "0x0000000000000abc"),
        ("MEMORY_ALLOCATION_VMEM_FREE", "", "0", ""),
    ]
    (scratch,) = files["scratch_memory_trace"]
    assert (scratch["Operation"], scratch["Alloc_Flags"], scratch["Allocation_Size"]) == (
        "SCRATCH_MEMORY_ALLOC",
        "2",
        "8",
    )
    (counter,) = files["counter_collection"]
    assert (counter["Counter_Name"], float(counter["Counter_Value"]), counter["Grid_Size"]) == (
        "SQ_WAVES",
        0.1 + 0.2,
        "1024",
    )


def test_all_ranks_are_in_every_file_in_order_and_times_stay_as_recorded(csv_files: ToCsv) -> None:
    files = csv_files(
        *(
            TraceBuilder(i, host=f"n{i}")
            .region("roctxMarkA", 90, 90, message=f"m{i}")
            .region("hipA", 50, 60)
            .region("hipB", 20, 70)
            for i in range(3)
        )
    )

    assert [row["Function"] for row in files["marker_api_trace"]] == ["m0", "m1", "m2"]
    assert [(row["Guid"], row["Start_Timestamp"]) for row in files["hip_api_trace"]] == [
        (guid_of(i), start) for i in range(3) for start in ("20", "50")
    ]
    assert len({row["Guid"] for row in files["agent_info"]}) == 3


@pytest.mark.parametrize(
    ("how", "label"),
    [(AgentIndex.ABSOLUTE, "Agent 1"), (AgentIndex.RELATIVE, "Agent 1"), (AgentIndex.TYPE_RELATIVE, "GPU 0")],
)
def test_agents_by_index(csv_files: ToCsv, how: AgentIndex, label: str) -> None:
    files = csv_files(TraceBuilder().kernel("k", 1, 2).kernel("k", 3, 4, agent=None), agent_index_value=how)

    assert [row["Agent_Id"] for row in files["kernel_trace"]] == [label, ""]


def test_kernel_rename(csv_files: ToCsv) -> None:
    files = csv_files(TraceBuilder().kernel("k", 1, 2, region="step").kernel("k", 3, 4), kernel_rename=True)

    assert [row["Kernel_Name"] for row in files["kernel_trace"]] == ["step", "k"]


def test_damaged_rows_are_written_as_they_are(csv_files: ToCsv) -> None:
    files = csv_files(
        TraceBuilder()
        .kernel("k", 0, 2)
        .kernel("bad", 9, 4)
        .sql('UPDATE "rocpd_kernel_dispatch{uuid}" SET stream_id = \'od"d,\' WHERE start = 0')
        .sql("UPDATE \"rocpd_info_kernel_symbol{uuid}\" SET display_name = CAST(x'62ff64' AS TEXT) WHERE id = 2")
    )

    written = [
        tuple(row[c] for c in ("Kernel_Name", "Start_Timestamp", "End_Timestamp", "Stream_Id"))
        for row in files["kernel_trace"]
    ]
    assert written == [("k", "0", "2", 'od"d,'), ("b\\xffd", "9", "4", "0")]


def test_calls_without_a_file_are_told(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().region("omp", 1, 2, category="OMPT").region("hip", 1, 2))

    FORMATS["csv"].write(session, ConvertOptions(tmp_path / "out"))

    assert session.notes == ["csv: 1 regions and samples are in no file, rocprofv3 has none for their category (OMPT)"]


def test_a_window_leaves_rows_out_without_a_word(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().region("early", 1, 2).region("late", 100, 200)).within(rocpd.Window(start="50%"))

    (path, _) = FORMATS["csv"].write(session, ConvertOptions(tmp_path / "out"))

    assert [row["Function"] for row in read_csv(path)] == ["late"]
    assert session.notes == []


def test_an_existing_file_stops_before_anything_is_written(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel("k", 1, 2).region("hip", 1, 2))
    out = tmp_path / "out"
    out.mkdir()
    (out / "out_agent_info.csv").write_text("mine")

    with pytest.raises(rocpd.OutputError, match=r"out_agent_info\.csv: exists"):
        FORMATS["csv"].write(session, ConvertOptions(out))
    assert [path.name for path in out.iterdir()] == ["out_agent_info.csv"]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FORMATS["csv"].write(session, ConvertOptions(out, force=True), stop)
    assert [path.read_text() for path in out.iterdir()] == ["mine"]


def test_progress_ends_at_the_total(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel("k", 1, 2).region("hip", 1, 2).region("mark", 1, 2, message="m"))
    seen: list[tuple[int, int]] = []

    FORMATS["csv"].write(session, ConvertOptions(tmp_path), lambda *step: seen.append(step))

    assert seen[-1] == (3, 3)
