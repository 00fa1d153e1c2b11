#include "records.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agents.h"
#include "launches.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

rocpd_text_t text(const char* words) { return rocpd_text(words, std::strlen(words)); }

// Names of kinds, as rocprofv3 writes them.
const char* category_name(std::uint32_t kind) {
    switch (kind) {
        case ROCPROFILER_BUFFER_TRACING_HSA_CORE_API: return "HSA_CORE_API";
        case ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API: return "HSA_AMD_EXT_API";
        case ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API: return "HSA_IMAGE_EXT_API";
        case ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API: return "HSA_FINALIZE_EXT_API";
        case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API: return "HIP_RUNTIME_API";
        case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API: return "HIP_COMPILER_API";
        case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT: return "HIP_RUNTIME_API_EXT";
        case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT: return "HIP_COMPILER_API_EXT";
        case ROCPROFILER_BUFFER_TRACING_RCCL_API: return "RCCL_API";
        case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH: return "KERNEL_DISPATCH";
        case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY: return "MEMORY_COPY";
        case ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION: return "MEMORY_ALLOCATION";
        case ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY: return "SCRATCH_MEMORY";
        default: return "UNKNOWN";
    }
}

// Text numbers of categories and functions, each asked for once.
class Names {
public:
    rocpd_text_t category(std::uint32_t kind) {
        const std::lock_guard<std::mutex> lock(mutex_);
        rocpd_text_t& known = categories_[kind];
        if (known == 0) known = text(category_name(kind));
        return known;
    }
    rocpd_text_t function(rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation) {
        const std::lock_guard<std::mutex> lock(mutex_);
        rocpd_text_t& known = functions_[{static_cast<int>(kind), operation}];
        if (known == 0) {
            const char* name = nullptr;
            std::uint64_t size = 0;
            g_sdk.query_buffer_tracing_kind_operation_name(kind, operation, &name, &size);
            known = name != nullptr ? rocpd_text(name, std::strlen(name)) : text("unknown function");
        }
        return known;
    }

private:
    std::mutex mutex_;
    std::map<std::uint32_t, rocpd_text_t> categories_;
    std::map<std::pair<int, int>, rocpd_text_t> functions_;
};

Names& names() {
    static Names& only = *new Names;
    return only;
}

std::uint32_t tid(rocprofiler_thread_id_t thread) { return static_cast<std::uint32_t>(thread); }

template <typename Record>
const Record& payload(const rocprofiler_record_header_t& header) {
    return *static_cast<const Record*>(header.payload);
}

// The parent of a call is the call it was made in, that of GPU work the call that launched it.
std::uint64_t parent(const rocprofiler_correlation_id_t& id) { return id.ancestor; }
std::uint64_t parent(const rocprofiler_async_correlation_id_t& id) { return id.internal; }

// Returns the event of a record.
template <typename Record>
rocpd_event_t event_of(const rocprofiler_record_header_t& header, const Record& r) {
    rocpd_event_t event{};
    event.category = names().category(header.kind);
    event.tid = tid(r.thread_id);
    event.stack_id = r.correlation_id.internal;
    event.parent_stack_id = parent(r.correlation_id);
    event.correlation_id = r.correlation_id.external.value;
    return event;
}

struct Arguments {
    std::vector<rocpd_argument_t> list;
    std::vector<std::string> values;
};

int take_argument(rocprofiler_buffer_tracing_kind_t, rocprofiler_tracing_operation_t, std::uint32_t, const void* const,
                  std::int32_t, const char* type, const char* name, const char* value, void* data) {
    auto& arguments = *static_cast<Arguments*>(data);
    arguments.values.emplace_back(value != nullptr ? value : "");
    arguments.list.push_back({text(type != nullptr ? type : ""), text(name != nullptr ? name : ""), nullptr, 0});
    return 0;
}

bool has_arguments(std::uint32_t kind) {
    return (kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT ||
            kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT) &&
           g_sdk.iterate_buffer_tracing_record_args != nullptr;
}

void on_call(const rocprofiler_record_header_t& header) {
    const auto& r = payload<rocprofiler_buffer_tracing_hip_api_record_t>(header);
    rocpd_region_t region{};
    region.event = event_of(header, r);
    region.name = names().function(r.kind, r.operation);
    region.start = r.start_timestamp;
    region.end = r.end_timestamp;
    Arguments arguments;
    if (has_arguments(header.kind)) {
        g_sdk.iterate_buffer_tracing_record_args(header, take_argument, &arguments);
        for (std::size_t i = 0; i < arguments.list.size(); ++i) {
            arguments.list[i].value = arguments.values[i].data();
            arguments.list[i].value_size = arguments.values[i].size();
        }
        region.arguments = arguments.list.data();
        region.argument_count = arguments.list.size();
    }
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
    d.queue_id = static_cast<std::int64_t>(info.queue_id.handle);
    d.stream_id = static_cast<std::int64_t>(launch.stream);
    d.region_name = launch.marker;
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
        case ROCPROFILER_MEMORY_COPY_HOST_TO_HOST: return text("MEMORY_COPY_HOST_TO_HOST");
        case ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE: return text("MEMORY_COPY_HOST_TO_DEVICE");
        case ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST: return text("MEMORY_COPY_DEVICE_TO_HOST");
        case ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE: return text("MEMORY_COPY_DEVICE_TO_DEVICE");
        default: return text("MEMORY_COPY_NONE");
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
    c.queue_id = 0;
    c.stream_id = static_cast<std::int64_t>(launch.stream);
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
    a.agent_id = agent_of(r.agent_id);
    a.address = r.address.value;
    a.size = r.allocation_size;
    a.queue_id = a.stream_id = -1;
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
    a.stream_id = -1;
    rocpd_allocation(&a);
}

void on_record(const rocprofiler_record_header_t& header) {
    if (header.category != ROCPROFILER_BUFFER_CATEGORY_TRACING) return;
    switch (header.kind) {
        case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH: return on_dispatch(header);
        case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY: return on_copy(header);
        case ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION: return on_allocation(header);
        case ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY: return on_scratch(header);
        default: return on_call(header);
    }
}

// Our buffers are lossless; should the SDK drop records all the same, the file says so. `dropped` counts up per buffer.
void note_dropped(rocprofiler_buffer_id_t buffer, std::uint64_t dropped) {
    static std::mutex& mutex = *new std::mutex;
    static auto& of_buffers = *new std::map<std::uint64_t, std::uint64_t>;
    std::uint64_t sum = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        of_buffers[buffer.handle] = dropped;
        for (const auto& [handle, count] : of_buffers) sum += count;
    }
    rocpd_note("rocprofiler_dropped_records", std::to_string(sum).c_str());
}

}  // namespace

void on_records(rocprofiler_context_id_t, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t** headers,
                std::size_t count, void*, std::uint64_t dropped) {
    for (std::size_t i = 0; i < count; ++i) on_record(*headers[i]);
    if (dropped > 0) note_dropped(buffer, dropped);
}

}  // namespace rocpd::client
