"""The `.sql` files: everything is documented, and the documentation is what SQLite makes of the text."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from rocpd.schema.load import TABLES, VIEWS, table, view
from rocpd.schema.write import suffix_of, tables_of
from tests.build import TraceBuilder, guid_of

UNITS = {"", "ns", "us", "bytes", "%", "GiB/s"}

# The views that AMD's own files hold, which other tools read by name and place. A view of ours has no row here.
PUBLISHED = """
busy: agent_id, type, GpuTime, WallTime, Busy
code_objects: id, guid, nid, pid, agent_abs_index, uri, load_base, load_size, load_delta, storage_type_str,
    code_object_size, storage_type, memory_base, memory_size
counters_collection: id, guid, dispatch_id, kernel_id, event_id, correlation_id, stack_id, parent_stack_id, pid, tid,
    agent_id, agent_abs_index, agent_log_index, agent_type_index, agent_type, queue_id, grid_size_x, grid_size_y,
    grid_size_z, grid_size, kernel_name, kernel_region, workgroup_size_x, workgroup_size_y, workgroup_size_z,
    workgroup_size, lds_block_size, scratch_size, vgpr_count, accum_vgpr_count, sgpr_count, counter_name,
    counter_symbol, component, description, block, expression, value_type, counter_id, value, start, end, is_constant,
    is_derived, duration, category, nid, extdata, code_object_id
events_args: event_id, category, stack_id, parent_stack_id, correlation_id, arg_position, arg_type, arg_name,
    arg_value, call_stack, line_info, extdata
kernel_symbols: id, guid, nid, pid, code_object_id, kernel_name, display_name, kernel_object, kernarg_segment_size,
    kernarg_segment_alignment, group_segment_size, private_segment_size, sgpr_count, arch_vgpr_count,
    accum_vgpr_count, kernel_symbol_size, kernel_id, kernel_code_entry_byte_offset, formatted_kernel_name,
    demangled_kernel_name, truncated_kernel_name, kernel_address
kernels: id, guid, tid, category, region, name, nid, pid, agent_abs_index, agent_log_index, agent_type_index,
    agent_type, code_object_id, kernel_id, dispatch_id, stream_id, queue_id, queue, stream, start, end, duration,
    grid_x, grid_y, grid_z, workgroup_x, workgroup_y, workgroup_z, lds_size, scratch_size, vgpr_count,
    accum_vgpr_count, sgpr_count, static_lds_size, static_scratch_size, stack_id, parent_stack_id, corr_id
memory_allocations: id, guid, category, nid, pid, tid, start, end, duration, type, level, agent_name, agent_abs_index,
    agent_log_index, agent_type_index, agent_type, address, size, queue_id, queue_name, stream_id, stream_name,
    stack_id, parent_stack_id, corr_id
memory_copies: id, guid, category, nid, pid, tid, start, end, duration, name, region_name, stream_id, queue_id,
    stream_name, queue_name, size, dst_device, dst_agent_abs_index, dst_agent_log_index, dst_agent_type_index,
    dst_agent_type, dst_address, src_device, src_agent_abs_index, src_agent_log_index, src_agent_type_index,
    src_agent_type, src_address, stack_id, parent_stack_id, corr_id
pmc_events: id, guid, pmc_id, event_id, category, name, nid, pid, dispatch_id, start, end, duration, counter_name,
    counter_value
pmc_info: id, guid, nid, pid, agent_abs_index, is_constant, is_derived, name, description, block, expression
processes: nid, machine_id, system_name, hostname, system_release, system_version, guid, ppid, pid, init, start, end,
    fini, command
region_args: id, guid, nid, pid, type, name, value
regions: id, guid, category, name, nid, pid, tid, start, end, duration, event_id, stack_id, parent_stack_id, corr_id,
    extdata, call_stack, line_info
regions_and_samples: id, guid, category, name, nid, pid, tid, start, end, duration, event_id, stack_id,
    parent_stack_id, corr_id, extdata, call_stack, line_info
sample_regions: id, guid, category, name, nid, pid, tid, start, END, duration, event_id, stack_id, parent_stack_id,
    corr_id, extdata, call_stack, line_info
samples: id, guid, category, name, nid, pid, tid, timestamp, event_id, stack_id, parent_stack_id, corr_id, extdata,
    call_stack, line_info
scratch_memory: id, guid, nid, pid, operation, agent_name, agent_abs_index, agent_log_index, agent_type_index,
    agent_type, queue_id, tid, alloc_flags, start, end, duration, size, address, correlation_id, stack_id,
    parent_stack_id, corr_id, category, event_extdata
stream_args: argument_id, event_id, arg_position, arg_type, arg_value, stream_id, nid, pid, stream_name, extdata
threads: nid, machine_id, system_name, hostname, system_release, system_version, guid, ppid, pid, tid, start, end, name
top: name, total_calls, total_duration, average, percentage
top_kernels: name, total_calls, total_duration, average, percentage
graph_launches: id, guid, nid, pid, tid, agent_abs_index, queue_id, start, end, duration, graph_exec_id,
    kernel_dispatch_count, stack_id, corr_id
"""


def published() -> dict[str, list[str]]:
    """Return view -> columns of the text above."""
    lines = PUBLISHED.replace("\n    ", " ").strip().splitlines()
    return {name: columns.split(", ") for name, columns in (line.split(": ") for line in lines)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> apsw.Connection:
    """An empty file of the newest version."""
    path = TraceBuilder().write(tmp_path_factory.mktemp("schema") / "empty.db")
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)


def columns_of(database: apsw.Connection, name: str) -> list[str]:
    return [str(row[0]) for row in database.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (name,))]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_and_column_is_documented(name: str, database: apsw.Connection) -> None:
    chosen = table(name)
    assert chosen.doc.endswith(".")
    assert all(column.doc and column.unit in UNITS for column in chosen.columns)
    assert [c.name for c in chosen.columns] == columns_of(database, name + suffix_of(guid_of(0)))


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_and_column_is_documented(name: str, database: apsw.Connection) -> None:
    chosen = view(name)
    assert chosen.doc.rstrip().endswith(".")
    assert all(column.doc and column.unit in UNITS for column in chosen.columns)
    assert [c.name for c in chosen.columns] == columns_of(database, name)


@pytest.mark.parametrize(("name", "columns"), published().items())
def test_views_of_amd_begin_with_their_columns_in_order(name: str, columns: list[str]) -> None:
    assert [column.name for column in view(name).columns][: len(columns)] == columns


@pytest.mark.parametrize("name", VIEWS)
def test_times_and_sizes_have_units(name: str) -> None:
    timed = {"start", "end", "END", "timestamp", "duration", "total_ns", "mean_ns", "min_ns", "max_ns", "std_ns"}
    for column in view(name).columns:
        if column.name in timed:
            assert column.unit == "ns", column.name
        if column.name in {"size", "bytes"}:
            assert column.unit == "bytes", column.name


def test_table_of_contents_is_what_lies_in_the_folders() -> None:
    folder = Path(__file__).parent.parent.parent / "rocpd" / "schema" / "sql"
    assert sorted(TABLES) == sorted(path.stem for path in folder.glob("tables/*.sql"))
    assert sorted(VIEWS) == sorted(path.stem for path in folder.glob("views/*.sql"))


def test_a_view_comes_after_those_it_reads() -> None:
    for index, name in enumerate(VIEWS):
        assert set(view(name).reads) <= {*TABLES, *VIEWS[:index]}, name


def test_since_tells_what_a_version_added() -> None:
    assert table("rocpd_graph_launch").since == "3.0.2"
    added = {
        (later, name, column)
        for earlier, later in (("3.0.0", "3.0.1"), ("3.0.1", "3.0.2"), ("3.0.2", "3.0.3"))
        for name, columns in tables_of(later).items()
        for column in columns
        if name in tables_of(earlier) and column not in tables_of(earlier)[name]
    }
    assert added == {
        ("3.0.2", "rocpd_kernel_dispatch", "graph_exec_id"),
        ("3.0.2", "rocpd_kernel_dispatch", "graph_node_id"),
        ("3.0.2", "rocpd_memory_copy", "graph_exec_id"),
        ("3.0.2", "rocpd_memory_copy", "graph_node_id"),
        ("3.0.3", "rocpd_info_pmc", "spm_support"),
        ("3.0.3", "rocpd_pmc_event", "sample_id"),
        ("3.0.3", "rocpd_pmc_event", "xcc"),
        ("3.0.3", "rocpd_pmc_event", "shader_engine"),
        ("3.0.3", "rocpd_pmc_event", "instance"),
    }
