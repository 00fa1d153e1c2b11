#include "records.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <unordered_set>

#include "agents.h"
#include "arguments.h"
#include "channels.h"
#include "forks.h"
#include "launches.h"
#include "names.h"
#include "other_records.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

std::uint32_t tid(rocprofiler_thread_id_t thread) { return static_cast<std::uint32_t>(thread); }

template <typename Record>
const Record& payload(const rocprofiler_record_header_t& header) {
    return *static_cast<const Record*>(header.payload);
}

// The parent of a call is the call it was made in, that of GPU work the call that launched it.
std::uint64_t parent(const rocprofiler_correlation_id_t& id) { return id.ancestor; }
std::uint64_t parent(const rocprofiler_async_correlation_id_t& id) { return id.internal; }

// Returns the number of a dispatch's queue, which gets its name then: as in rocprofv3's files, "Queue 0" is the first
// in which a kernel ran, whatever its number.
std::int64_t queue_of(rocprofiler_queue_id_t queue) {
    static ForkMutex& mutex = *new ForkMutex;
    static auto& used = *new std::unordered_set<std::uint64_t>;
    const std::lock_guard<ForkMutex> lock(mutex);
    const auto id = static_cast<std::int64_t>(queue.handle);
    if (id != 0 && used.insert(queue.handle).second)
        rocpd_register_queue(id, ("Queue " + std::to_string(used.size() - 1)).c_str());
    return id;
}

// Returns the event of a record.
template <typename Record>
rocpd_event_t event_of(const rocprofiler_record_header_t& header, const Record& r) {
    rocpd_event_t event{};
    event.category = category_of(header.kind);
    event.tid = tid(r.thread_id);
    event.stack_id = r.correlation_id.internal;
    event.parent_stack_id = parent(r.correlation_id);
    event.correlation_id = r.correlation_id.external.value;
    return event;
}

void on_call(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_hip_api_record_t>(header);
    rocpd_region_t region{};
    region.event = event_of(header, r);
    region.name = function_of(header.kind, r.operation);
    region.start = r.start_timestamp;
    region.end = r.end_timestamp;
    Arguments arguments;
    read_arguments(header, arguments);
    region.arguments = arguments.list.data();
    region.argument_count = arguments.list.size();
    rocpd_region(&region);
}

void on_dispatch(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_kernel_dispatch_record_t>(header);
    const rocprofiler_kernel_dispatch_info_t& info = r.dispatch_info;
    const Launch launch = take_launch(r.correlation_id.internal);
    rocpd_dispatch_t d{};
    d.event = event_of(header, r);
    d.agent_id = agent_of(info.agent_id);
    d.kernel_id = static_cast<std::int64_t>(info.kernel_id);
    d.dispatch_id = static_cast<std::int64_t>(info.dispatch_id);
    d.queue_id = queue_of(info.queue_id);
    d.stream_id = static_cast<std::int64_t>(launch.stream);
    d.region_name = launch.marker;
    d.graph_exec_id = launch.node.graph;
    d.graph_node_id = launch.node.number;
    d.start = r.start_timestamp;
    d.end = r.end_timestamp;
    d.private_segment_size = info.private_segment_size;
    d.group_segment_size = info.group_segment_size;
    const std::array workgroup = {info.workgroup_size.x, info.workgroup_size.y, info.workgroup_size.z};
    const std::array grid = {info.grid_size.x, info.grid_size.y, info.grid_size.z};
    std::memcpy(d.workgroup_size, workgroup.data(), sizeof workgroup);
    std::memcpy(d.grid_size, grid.data(), sizeof grid);
    rocpd_dispatch(&d);
}

rocpd_text_t direction(rocprofiler_memory_copy_operation_t operation) {
    switch (operation) {
        case ROCPROFILER_MEMORY_COPY_HOST_TO_HOST: return text_of("MEMORY_COPY_HOST_TO_HOST");
        case ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE: return text_of("MEMORY_COPY_HOST_TO_DEVICE");
        case ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST: return text_of("MEMORY_COPY_DEVICE_TO_HOST");
        case ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE: return text_of("MEMORY_COPY_DEVICE_TO_DEVICE");
        default: return text_of("MEMORY_COPY_NONE");
    }
}

void on_copy(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_memory_copy_record_t>(header);
    const Launch launch = take_launch(r.correlation_id.internal);
    rocpd_copy_t c{};
    c.event = event_of(header, r);
    c.name = direction(r.operation);
    c.region_name = launch.marker;
    c.start = r.start_timestamp;
    c.end = r.end_timestamp;
    c.dst_agent_id = agent_of(r.dst_agent_id);
    c.src_agent_id = agent_of(r.src_agent_id);
    c.size = r.bytes;
    if (r.size > offsetof(rocprofiler_buffer_tracing_memory_copy_record_t, src_address)) {
        c.dst_address = r.dst_address.value;
        c.src_address = r.src_address.value;
    }
    c.queue_id = -1;  // the SDK names none
    c.stream_id = static_cast<std::int64_t>(launch.stream);
    c.graph_exec_id = launch.node.graph;
    c.graph_node_id = launch.node.number;
    rocpd_copy(&c);
}

void on_allocation(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_memory_allocation_record_t>(header);
    rocpd_allocation_t a{};
    a.event = event_of(header, r);
    const bool frees = r.operation == ROCPROFILER_MEMORY_ALLOCATION_FREE ||
                       r.operation == ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE;
    const bool is_virtual = r.operation == ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE ||
                            r.operation == ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE;
    a.type = frees ? ROCPD_FREE : ROCPD_ALLOC;
    a.level = is_virtual ? ROCPD_VIRTUAL : ROCPD_REAL;
    a.start = r.start_timestamp;
    a.end = r.end_timestamp;
    a.agent_id = frees ? -1 : agent_of(r.agent_id);  // the SDK does not know whose memory is freed
    a.address = r.address.value;
    a.size = r.allocation_size;
    a.queue_id = 0;  // none, in rocprofv3's files
    a.stream_id = static_cast<std::int64_t>(take_launch(r.correlation_id.internal).stream);
    rocpd_allocation(&a);
}

void on_scratch(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_scratch_memory_record_t>(header);
    rocpd_allocation_t a{};
    a.event = event_of(header, r);
    const std::string flags = std::to_string(static_cast<std::uint32_t>(r.flags));
    a.event.message = flags.data();
    a.event.message_size = flags.size();
    a.type = r.operation == ROCPROFILER_SCRATCH_MEMORY_ALLOC ? ROCPD_ALLOC
             : r.operation == ROCPROFILER_SCRATCH_MEMORY_FREE ? ROCPD_FREE
                                                              : ROCPD_RECLAIM;
    a.level = ROCPD_SCRATCH;
    a.start = r.start_timestamp;
    a.end = r.end_timestamp;
    a.agent_id = agent_of(r.agent_id);
    a.size = r.allocation_size;
    a.queue_id = static_cast<std::int64_t>(r.queue_id.handle);
    a.stream_id = 0;
    rocpd_allocation(&a);
}

void on_record(const rocprofiler_record_header_t& header) {
    if (header.category != ROCPROFILER_BUFFER_CATEGORY_TRACING) return;
    switch (header.kind) {
        case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH: return on_dispatch(header);
        case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY: return on_copy(header);
        case ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION: return on_allocation(header);
        case ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY: return on_scratch(header);
        default: return take_other(header) ? void() : on_call(header);
    }
}

// Our buffers are lossless; should the SDK drop records all the same, the file says so. `dropped` counts up per buffer.
void note_dropped(rocprofiler_buffer_id_t buffer, std::uint64_t dropped) {
    static ForkMutex& mutex = *new ForkMutex;
    static auto& of_buffers = *new std::map<std::uint64_t, std::uint64_t>;
    std::uint64_t sum = 0;
    {
        const std::lock_guard<ForkMutex> lock(mutex);
        of_buffers[buffer.handle] = dropped;
        for (const auto& [handle, count] : of_buffers) sum += count;
    }
    rocpd_note("rocprofiler_dropped_records", std::to_string(sum).c_str());
}

}  // namespace

void on_records(rocprofiler_context_id_t, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t** headers,
                std::size_t count, void* data, std::uint64_t dropped) {
    if (!is_own(data)) return;
    const Delivery delivery;
    for (std::size_t i = 0; i < count; ++i) on_record(*headers[i]);
    if (dropped > 0) note_dropped(buffer, dropped);
}

}  // namespace rocpd::client
