"""The views that AMD's own files hold, with their columns: what other tools read by name and place.

A view of ours has no row here, and columns that we add to one of AMD's stand after these.
"""

from __future__ import annotations

_TEXT = """
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

PUBLISHED = {
    name: columns.split(", ")
    for name, columns in (line.split(": ") for line in _TEXT.replace("\n    ", " ").strip().splitlines())
}
"""View -> its columns in AMD's order."""
