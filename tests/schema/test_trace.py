"""TraceWriter: what was written reads back in every view, references lead somewhere, nothing is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocpd.base import UsageError
from rocpd.schema.load import table
from rocpd.schema.render import views_over
from rocpd.schema.trace import events, infos
from rocpd.schema.trace.events import (
    MARKER_RANGE,
    Arguments,
    CounterValues,
    Events,
    GraphLaunches,
    KernelDispatches,
    MemoryAllocations,
    MemoryCopies,
    Regions,
    Samples,
    marker_ranges,
    marks,
    message_json,
)
from rocpd.schema.trace.infos import (
    REFERENCES,
    AgentInfo,
    CodeObjectInfo,
    CounterInfo,
    Info,
    KernelInfo,
    NodeInfo,
    ProcessInfo,
    ThreadInfo,
    TrackInfo,
)
from rocpd.schema.trace.writer import TableRows, TraceWriter
from rocpd.schema.versions import LATEST, VERSIONS
from rocpd.schema.write import create, tables_of
from tests.build import guid_of
from tests.soak import sized

NODE = NodeInfo(machine_id="machine", hostname="node0")
PROCESS = ProcessInfo(16, ppid=1, command="./app")


@contextmanager
def writing(path: Path, version: str = LATEST) -> Iterator[TraceWriter]:
    """A file to fill, replaced when there is one."""
    with create(path, guid_of(0), version, force=True) as file:
        yield TraceWriter(file, NODE, PROCESS)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def check_whole(path: Path) -> None:
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "PRAGMA foreign_key_check") == []


def write_everything(trace: TraceWriter) -> None:
    """Rows of every kind that the schema version has."""
    gpu = trace.register(AgentInfo(1, type="GPU", name="gfx942"))
    code = trace.register(CodeObjectInfo(7, agent_id=gpu, uri="file:///a.co", load_base=4096))
    gemm = trace.register(
        KernelInfo(3, code_object_id=code, display_name="gemm", extdata='{"formatted_kernel_name":"g"}')
    )
    calls = trace.write(
        Regions(start=[10, 30], end=[20, 40], name=["hipLaunchKernel", "hipMemcpy"], tid=16,
                event=Events("HIP_RUNTIME_API_EXT", [1, 2], correlation_id=[5, 0], call_stack='["main"]',
                             line_info='{"line":4}'))
    )  # fmt: skip
    trace.write(Arguments(event_id=calls.events, position=0, type="hipStream_t", name="stream", value=["0x1", None],
                          extdata=['{"stream_id":1}', "{}"]))  # fmt: skip
    trace.write(marker_ranges("step", 5, 50, 16))
    trace.write(marks("half", 25, trace.register(TrackInfo(tid=16, name=MARKER_RANGE))))
    launched = trace.write(
        KernelDispatches(start=[21, 23], end=[22, 26], tid=16, agent_id=gpu, kernel_id=gemm, queue_id=16, stream_id=1,
                         workgroup_size_x=64, grid_size_x=256, region_name="step", graph_exec_id=1,
                         graph_node_id=[0, 1], event=Events(stack_id=1))
    )  # fmt: skip
    waves = CounterInfo(name="SQ_WAVES", agent_id=gpu, target_arch="GPU", units="waves")
    trace.write(CounterValues(event_id=launched.events, pmc_id=trace.register(waves), value=[4.0, 8.5]))
    trace.write(MemoryCopies(start=32, end=35, tid=16, name="MEMORY_COPY_HOST_TO_DEVICE", src_agent_id=0,
                             dst_agent_id=gpu, size=4096, stream_id=1, event=Events(stack_id=2)))  # fmt: skip
    trace.write(MemoryAllocations(start=[1, 45], end=[2, 46], agent_id=gpu, type=["ALLOC", "FREE"],
                                  level=["REAL", "SCRATCH"], size=[64, 0]))  # fmt: skip
    if trace.holds("rocpd_graph_launch"):
        trace.write(GraphLaunches(start=21, end=26, tid=16, agent_id=gpu, graph_exec_id=1, kernel_dispatch_count=2))
    power = trace.register(TrackInfo(name="GPU power"))
    sample = trace.write(Samples(track_id=power, timestamp=[12, 14], event=Events("amd_smi")))
    watts = trace.register(CounterInfo(name="power", units="W"))
    trace.write(CounterValues(event_id=sample.events, pmc_id=watts, value=[300.0, None]))
    trace.note("importer", "test")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_view_shows_what_was_written(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path, version) as trace:
        write_everything(trace)
    check_whole(path)
    empty = {view for view in views_over(tables_of(version)) if not rows(path, f"SELECT 1 FROM {view} LIMIT 1")}
    assert empty == (set() if version >= "3.0.2" else {"graph_launches"})
    assert (
        rows(path, "SELECT name, category, region, queue, stream, stack_id, parent_stack_id FROM kernels")
        == [("gemm", "KERNEL_DISPATCH", "step", "Queue 16", "Stream 1", 1, 1)] * 2
    )
    assert rows(path, "SELECT name, function, category, start, \"end\" FROM markers ORDER BY start") == [
        ("step", "roctxThreadRangeA", "MARKER_CORE_RANGE_API", 5, 50),
        ("half", "MARKER_CORE_RANGE_API", "MARKER_CORE_RANGE_API", 25, 25),
    ]  # fmt: skip
    calls = "SELECT name, corr_id, parent_stack_id, call_stack, line_info FROM regions WHERE category LIKE 'HIP%'"
    assert rows(path, calls) == [
        ("hipLaunchKernel", 5, 0, '["main"]', '{"line":4}'), ("hipMemcpy", 0, 0, '["main"]', '{"line":4}'),
    ]  # fmt: skip
    assert rows(path, "SELECT category, type, size, stack_id, parent_stack_id FROM memory_allocations") == [
        ("MEMORY_ALLOCATION", "ALLOC", 64, 0, 0), ("SCRATCH_MEMORY", "FREE", 0, 0, 0),
    ]  # fmt: skip
    assert rows(path, "SELECT counter_name, value FROM counters_collection") == [("SQ_WAVES", 4.0), ("SQ_WAVES", 8.5)]
    assert rows(path, "SELECT value FROM rocpd_metadata WHERE tag = 'importer'") == [("test",)]


NUMBERS = st.one_of(st.none(), st.integers(-(1 << 62), 1 << 62))
IDS = st.integers(0, 5)
TEXTS = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5))


@st.composite
def dispatches(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns of dispatches and their events, with NULL wherever the tables take it."""
    count = draw(st.integers(0, 5))
    values = {"start": st.integers(0, 99), "end": st.integers(0, 99), "tid": st.none() | IDS, "agent_id": IDS,
              "kernel_id": IDS, "queue_id": IDS, "stream_id": IDS, "region_name": TEXTS, "graph_exec_id": NUMBERS,
              "private_segment_size": NUMBERS}  # fmt: skip
    of_events = {"category": TEXTS, "stack_id": NUMBERS, "parent_stack_id": NUMBERS, "correlation_id": NUMBERS}
    return {name: [draw(kind) for _ in range(count)] for name, kind in (values | of_events).items()}


READ_BACK = """SELECT K.start, K."end", K.tid, agent_abs_index, K.kernel_id, K.queue_id, K.stream_id, region,
    D.graph_exec_id, D.private_segment_size, category, stack_id, parent_stack_id, corr_id
    FROM kernels K JOIN rocpd_kernel_dispatch D ON D.id = K.id ORDER BY K.id"""


@given(columns=dispatches())
@settings(max_examples=sized(15, 600), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_read_back_and_lead_somewhere(columns: dict[str, list[Any]], tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    of_events = {name: columns[name] for name in ("category", "stack_id", "parent_stack_id", "correlation_id")}
    of_rows = {name: values for name, values in columns.items() if name not in of_events}
    with writing(path) as trace:
        trace.write(KernelDispatches(**of_rows, event=Events(**of_events)))
    check_whole(path)
    assert rows(path, READ_BACK) == list(zip(*columns.values(), strict=True))


def test_columns_may_come_from_numpy_and_arrow(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    start = np.array([1, 2, 3])
    tid = np.ma.masked_array([16, 17, 18], [False, True, False])
    sizes = pa.array([8, None, 16])
    names = np.array(["a", "b", "a"])
    with writing(path) as trace:
        copies = MemoryCopies(start=start, end=start + 1, tid=tid, name=names, size=np.int64(5), src_address=sizes)
        assert list(trace.write(copies).ids) == [1, 2, 3]
    sql = 'SELECT start, "end", tid, name, size, src_address FROM memory_copies'
    assert rows(path, sql) == [(1, 2, 16, "a", 5, 8), (2, 3, None, "b", 5, None), (3, 4, 18, "a", 5, 16)]


def test_addresses_in_the_upper_half_are_stored_as_signed_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path) as trace:
        addresses = np.array([0xFFFFFFFFFFFFFF00, 4096], dtype=np.uint64)
        trace.write(MemoryAllocations(start=[1, 2], end=3, address=addresses, size=8))
    assert rows(path, "SELECT address FROM memory_allocations") == [(-256,), (4096,)]


def test_things_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path) as trace:
        assert [trace.string(text) for text in ("a", "b", "a", "")] == [2, 3, 2, 1]
        assert [trace.register(KernelInfo(display_name=name)) for name in ("f", "g", "f")] == [1, 2, 1]
        assert [trace.register(ThreadInfo(16, name=name)) for name in ("main", "other")] == [16, 16]
        assert trace.register(TrackInfo(name="power", tid=16)) != trace.register(TrackInfo(name="power"))
        trace.write(Regions(start=[1, 1], end=2, name="f", tid=[16, 17]))
    assert rows(path, "SELECT id, tid, name FROM rocpd_info_thread") == [(16, 16, "main"), (17, 17, None)]
    assert rows(path, "SELECT id, kernel_name, display_name, code_object_id FROM rocpd_info_kernel_symbol") == [
        (1, "f", "f", 0), (2, "g", "g", 0)
    ]  # fmt: skip
    assert rows(path, "SELECT id, uri FROM rocpd_info_code_object") == [(0, "unknown")]


def test_what_nobody_registered_gets_a_row_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path) as trace:
        trace.write(KernelDispatches(start=1, end=2, agent_id=9, kernel_id=8, queue_id=7, stream_id=6, tid=5))
        trace.write(Samples(track_id=4, timestamp=1))
        trace.write(CounterValues(event_id=None, pmc_id=3, value=1.0))
    check_whole(path)
    names = {"agent": "agent 9", "kernel_symbol": "kernel 8", "queue": "Queue 7", "stream": "Stream 6", "thread": None}
    for thing, name in (names | {"pmc": "counter 3"}).items():
        column = "display_name" if thing == "kernel_symbol" else "name"
        assert rows(path, f"SELECT {column} FROM rocpd_info_{thing}") == [(name,)]
    assert rows(path, "SELECT name FROM samples") == [("track 4",)]


def test_given_ids_are_kept_and_never_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path) as trace:
        trace.write(Regions(id=[70, 60], start=1, end=2, name="f", tid=16))
        more = trace.write(Regions(start=1, end=2, name="f", tid=16))
        assert list(more.ids) == [71]
        shared = trace.write(Regions(start=1, end=2, name="f", tid=16, event=more.events))
        assert list(shared.events) == list(more.events)
        trace.write(Regions(start=1, end=2, name="f", tid=16, event=None))
    assert rows(path, "SELECT id, event_id FROM rocpd_region ORDER BY id") == [
        (60, 2), (70, 1), (71, 3), (72, 3), (73, None)
    ]  # fmt: skip
    assert rows(path, "SELECT COUNT(*) FROM rocpd_event") == [(3,)]


def test_a_marker_with_more_than_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with writing(path) as trace:
        event = Events(MARKER_RANGE, extdata=message_json("größer", unfinished=True))
        trace.write(Regions(start=1, end=2, name="roctxThreadRangeA", tid=16, event=event))
    assert rows(path, "SELECT name, extdata ->> 'unfinished' FROM markers JOIN rocpd_event E ON E.id = event_id") == [
        ("größer", 1)
    ]


def test_a_message_and_other_extdata_of_one_event_are_refused() -> None:
    with pytest.raises(UsageError, match="both message and extdata"):
        marker_ranges("step", 1, 2, 16, event=Events(extdata="{}"))


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="Regions: columns of different lengths: start 2, name 1"),
        writing(tmp_path / "a.db") as trace,
    ):
        trace.write(Regions(start=[1, 2], end=3, name=["a"], tid=16))
    with (
        pytest.raises(UsageError, match="events of Regions: columns of different lengths"),
        writing(tmp_path / "a.db") as trace,
    ):
        trace.write(Regions(start=[1, 2], end=3, name="a", tid=16, event=Events(stack_id=[1, 2, 3])))


def test_a_table_that_the_version_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rocpd_graph_launch"), writing(tmp_path / "a.db", "3.0.1") as trace:
        trace.write(GraphLaunches(start=1, end=2))


def test_damaged_rows_go_through_the_low_door(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with create(path, guid_of(0)) as file:
        file.loosen("rocpd_region")
        trace = TraceWriter(file, NODE, PROCESS)
        sound = trace.prepare(Regions(start=[1, 2], end=3, name="f", tid=16))
        trace.insert(sound.with_columns({"tid": None, "end": [0, -1], "name_id": 99}))
        trace.insert(TableRows("rocpd_event", {"category_id": [99]}))
    assert rows(path, "SELECT id, start, \"end\", tid, name_id, event_id FROM rocpd_region") == [
        (1, 1, 0, None, 99, 1), (2, 2, -1, None, 99, 2),
    ]  # fmt: skip
    assert rows(path, "SELECT id, category_id FROM rocpd_event") == [(1, None), (2, None), (3, 99)]


CLASSES = [c for module in (events, infos) for c in vars(module).values() if hasattr(c, "TABLE")]


@pytest.mark.parametrize("described", CLASSES, ids=lambda c: c.__name__)
def test_fields_are_the_columns_of_their_table(described: Any) -> None:
    """Every column can be written, and no field goes nowhere."""
    names = {column.name for column in table(described.TABLE).columns} - {"guid"}
    texts = {f"{f.name}_id" for f in fields(described) if f"{f.name}_id" in names and f.name not in names}
    direct = {f.name for f in fields(described)} & names
    filled_in = {"id", "nid", "pid", "ppid"}
    assert names - filled_in == (texts | direct) - filled_in
    assert {f.name for f in fields(described)} - {name.removesuffix("_id") for name in texts} - direct <= {"message"}


@pytest.mark.parametrize("info", dict.fromkeys(REFERENCES.values()), ids=lambda c: c.__name__)
def test_an_id_is_description_enough(info: type[Info], tmp_path: Path) -> None:
    with writing(tmp_path / "a.db") as trace:
        assert trace.register(info(5)) == 5
    check_whole(tmp_path / "a.db")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel_id": ["gemm"]}, "KernelDispatches: kernel_id is 'gemm' in row 0, not of type int"),
        ({"stream_id": [0, "s1"]}, "KernelDispatches: stream_id is 's1' in row 1, not of type int"),
        ({"start": [1.5, 2]}, "KernelDispatches: start is 1.5 in row 0, not of type int"),
        ({"start": np.array([1.5, 2.0])}, "KernelDispatches: start is 1.5 in row 0, not of type int"),
        ({"start": pa.array([1, 2.5])}, "KernelDispatches: start is 1.0 in row 0, not of type int"),
        ({"end": "x"}, "KernelDispatches: end is 'x' in row 0, not of type int"),
        ({"region_name": [None, 2.5]}, "KernelDispatches: region_name is 2.5 in row 1, not of type str or int"),
        ({"extdata": 5}, "KernelDispatches: extdata is 5 in row 0, not of type str"),
        ({"agent_id": None}, "KernelDispatches: agent_id is missing in row 0"),
        ({"agent_id": [1, None]}, "KernelDispatches: agent_id is missing in row 1"),
        ({"end": [2, 1 << 63]}, "KernelDispatches: end is 9223372036854775808 in row 1"),
        ({"id": [3, 3]}, "KernelDispatches: UNIQUE constraint failed"),
        ({"event": Events("x", message=["a", 2.5])}, "Events: message is 2.5 in row 1, not of type str or int"),  # type: ignore[list-item]
        ({"event": Events(stack_id=[1, "a"])}, "Events: stack_id is 'a' in row 1, not of type int"),  # type: ignore[list-item]
    ],
)
def test_what_a_table_does_not_take_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    good: dict[str, Any] = {"start": [1, 2], "end": [2, 3], "agent_id": 1, "kernel_id": 1}
    with pytest.raises(UsageError) as error, writing(tmp_path / "a.db") as trace:
        trace.write(KernelDispatches(**{**good, **change}))
    assert str(error.value).startswith(message)


def test_descriptions_are_checked_too(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="AgentInfo: absolute_index is 'x' in row 0"),
        writing(tmp_path / "a.db") as trace,
    ):
        trace.register(AgentInfo(1, absolute_index="x"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="AgentInfo: CHECK constraint failed"), writing(tmp_path / "a.db") as trace:
        trace.register(AgentInfo(1, type="TPU"))
