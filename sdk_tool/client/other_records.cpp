#include "other_records.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agents.h"
#include "forks.h"
#include "kinds.h"
#include "names.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

// Every record starts like this.
struct Start {
    std::uint64_t size;
    std::int32_t kind;
    rocprofiler_tracing_operation_t operation;
};

// Layouts of the public interface; not in all of its headers.
struct PageMigration {
    Start head;
    std::uint64_t start, end;
    std::uint32_t pid;
    std::uint64_t start_address, end_address;
    rocprofiler_agent_id_t src, dst, prefetch, preferred;
    std::int32_t error;
};

struct PageFault {
    Start head;
    std::uint64_t start, end;
    std::uint32_t pid;
    rocprofiler_agent_id_t agent;
    std::uint64_t address;
};

struct QueueSuspension {
    Start head;
    std::uint64_t start, end;
    std::uint32_t pid;
    rocprofiler_agent_id_t agent;
};

struct Unmapping {
    Start head;
    std::uint64_t time;
    std::uint32_t pid;
    rocprofiler_agent_id_t agent;
    std::uint64_t start_address, end_address;
};

struct Dropped {
    Start head;
    std::uint64_t time;
    std::uint32_t pid, count;
};

struct HipEvent {
    Start head;
    rocprofiler_async_correlation_id_t correlation;
    rocprofiler_thread_id_t thread;
    std::uint64_t start, end;
    rocprofiler_agent_id_t agent;
    rocprofiler_queue_id_t queue;
    std::uint64_t event;
    rocprofiler_queue_id_t source;
};

struct GraphLaunch {
    Start head;
    rocprofiler_correlation_id_t correlation;
    rocprofiler_thread_id_t thread;
    std::uint64_t start, end;
    rocprofiler_agent_id_t agent;
    rocprofiler_queue_id_t queue;
    std::uint64_t graph, kernels;
};

// A region in the making, with facts as its arguments.
class Event {
public:
    Event(const Start& head, std::uint64_t start, std::uint64_t end) {
        region_.event.category = category_of(static_cast<std::uint32_t>(head.kind));
        region_.event.tid = static_cast<std::uint32_t>(getpid());  // none of ours did it
        region_.name = function_of(static_cast<std::uint32_t>(head.kind), head.operation);
        region_.start = start;
        region_.end = end;
    }
    Event& add(const char* name, std::int64_t value) { return add(name, "int64_t", std::to_string(value)); }
    Event& add(const char* name, rocprofiler_agent_id_t agent) { return add(name, agent_of(agent)); }
    Event& add_address(const char* name, std::uint64_t address) {
        char text[24];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
        return add(name, "void*", text);
    }
    rocpd_event_t& event() { return region_.event; }
    void record() {
        std::vector<rocpd_argument_t> arguments;
        for (const Fact& fact : facts_)
            arguments.push_back({text_of(fact.type), text_of(fact.name), fact.value.data(), fact.value.size()});
        region_.arguments = arguments.data();
        region_.argument_count = arguments.size();
        rocpd_region(&region_);
    }

private:
    struct Fact {
        const char* name;
        const char* type;
        std::string value;
    };

    Event& add(const char* name, const char* type, std::string value) {
        facts_.push_back({name, type, std::move(value)});
        return *this;
    }

    rocpd_region_t region_{};
    std::vector<Fact> facts_;
};

void take(const PageMigration& r) {
    Event event(r.head, r.start, r.end);
    event.add("src_agent", r.src).add("dst_agent", r.dst).add_address("start_address", r.start_address);
    event.add_address("end_address", r.end_address).add("error_code", r.error).record();
}

void take(const PageFault& r) {
    Event(r.head, r.start, r.end).add("agent", r.agent).add_address("address", r.address).record();
}

void take(const QueueSuspension& r) { Event(r.head, r.start, r.end).add("agent", r.agent).record(); }

void take(const Unmapping& r) {
    Event event(r.head, r.time, r.time);
    event.add("agent", r.agent).add_address("start_address", r.start_address);
    event.add_address("end_address", r.end_address).record();
}

void take(const Dropped& r) { Event(r.head, r.time, r.time).add("count", r.count).record(); }

void take(const HipEvent& r) {
    Event event(r.head, r.start, r.end);
    event.event().tid = static_cast<std::uint32_t>(r.thread);
    event.event().stack_id = event.event().parent_stack_id = r.correlation.internal;
    event.event().correlation_id = r.correlation.external.value;
    event.add("agent", r.agent).add("queue", static_cast<std::int64_t>(r.queue.handle));
    event.add_address("event", r.event).add("source_queue", static_cast<std::int64_t>(r.source.handle)).record();
}

void take(const GraphLaunch& r) {
    rocpd_graph_launch_t launch{};
    launch.event.category = category_of(static_cast<std::uint32_t>(r.head.kind));
    launch.event.tid = static_cast<std::uint32_t>(r.thread);
    launch.event.stack_id = r.correlation.internal;
    launch.event.parent_stack_id = r.correlation.ancestor;
    launch.event.correlation_id = r.correlation.external.value;
    launch.agent_id = agent_of(r.agent);
    launch.queue_id = static_cast<std::int64_t>(r.queue.handle);
    launch.start = r.start;
    launch.end = r.end;
    launch.graph_exec_id = r.graph;
    launch.kernel_dispatch_count = r.kernels;
    rocpd_graph_launch(&launch);
}

// Records that cannot be read are counted in the file, by kind.
void note_unread(std::uint32_t kind) {
    static ForkMutex& mutex = *new ForkMutex;
    static auto& counts = *new std::map<std::uint32_t, std::uint64_t>;
    const std::lock_guard<ForkMutex> lock(mutex);
    rocpd_note(("rocprofiler_unread_records " + kind_name(kind)).c_str(), std::to_string(++counts[kind]).c_str());
}

template <typename Record>
void read(const rocprofiler_record_header_t& header) {
    Record record{};
    Start head{};
    std::memcpy(&head, header.payload, sizeof head);
    // `size` is that of the SDK's struct, which may have more fields after ours, but not fewer.
    if (head.size < sizeof record) return note_unread(header.kind);
    std::memcpy(&record, header.payload, sizeof record);
    take(record);
}

using Reader = void (*)(const rocprofiler_record_header_t&);

std::map<std::uint32_t, Reader> known_readers() {
    std::map<std::uint32_t, Reader> readers;
    for (const auto& [name, reader] : std::initializer_list<std::pair<const char*, Reader>>{
             {"KFD_PAGE_MIGRATE", read<PageMigration>},
             {"KFD_PAGE_FAULT", read<PageFault>},
             {"KFD_QUEUE", read<QueueSuspension>},
             {"KFD_EVENT_UNMAP_FROM_GPU", read<Unmapping>},
             {"KFD_EVENT_DROPPED_EVENTS", read<Dropped>},
             {"HIP_GRAPH", read<GraphLaunch>},
             {"HIP_EVENT", read<HipEvent>}})
        if (const std::uint32_t kind = record_kind(name)) readers[kind] = reader;
    return readers;
}

// Whether a record makes sense as that of a call: all libraries' calls have had one layout so far.
bool looks_like_call(const rocprofiler_record_header_t& header) {
    const auto& r = *static_cast<const rocprofiler_buffer_tracing_hip_api_record_t*>(header.payload);
    return r.size >= sizeof r && r.start_timestamp > 0 && r.start_timestamp <= r.end_timestamp &&
           r.end_timestamp <= rocpd_now() && r.thread_id > 0 && r.thread_id <= UINT32_MAX;
}

}  // namespace

bool take_other(const rocprofiler_record_header_t& header) {
    static const auto& readers = *new std::map<std::uint32_t, Reader>(known_readers());
    const auto found = readers.find(header.kind);
    if (found != readers.end()) {
        found->second(header);
        return true;
    }
    if (looks_like_call(header)) return false;
    note_unread(header.kind);
    return true;
}

}  // namespace rocpd::client
