#include "streams.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include "forks.h"
#include "launches.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

constexpr int kDeepestCall = 64;

// HIP's numbers for the default stream in its old form, and for the stream that each thread has of its own.
constexpr std::uintptr_t kLegacy = 1, kPerThread = 2;

// HIP calls nest: each sets its stream on entry and the previous one comes back on return.
thread_local std::uint64_t t_streams[kDeepestCall];
thread_local int t_call_depth = 0;
thread_local std::uint64_t t_own = 0;  // id of the thread's own stream

struct StreamIds {
    ForkMutex mutex;
    std::unordered_map<const void*, std::uint64_t> ids;  // by hipStream_t
    std::uint64_t last = 0;
};

StreamIds& g_stream_ids = *new StreamIds;

void register_stream(std::uint64_t id) {
    const std::string name = id == 0 ? "Default Stream" : "Stream " + std::to_string(id);
    rocpd_register_stream(static_cast<std::int64_t>(id), name.c_str());
}

// Gives `stream` a number of its own; where it has one already, only if it is a new stream.
std::uint64_t numbered(const void* stream, bool is_new) {
    std::uint64_t id = 0;
    {
        const std::lock_guard<ForkMutex> lock(g_stream_ids.mutex);
        const auto [entry, fresh] = g_stream_ids.ids.try_emplace(stream, 0);
        if (!fresh && !is_new) return entry->second;
        id = entry->second = ++g_stream_ids.last;
    }
    register_stream(id);
    return id;
}

std::uint64_t id_of(const void* stream) {
    const auto number = reinterpret_cast<std::uintptr_t>(stream);
    if (number == 0 || number == kLegacy) return 0;
    if (number != kPerThread) return numbered(stream, false);
    if (t_own == 0) t_own = numbered(&t_own, true);
    return t_own;
}

void enter(std::uint64_t id) {
    if (t_call_depth < kDeepestCall) t_streams[t_call_depth] = id;
    ++t_call_depth;
}

}  // namespace

std::uint64_t current_stream() {
    const int depth = t_call_depth < kDeepestCall ? t_call_depth : kDeepestCall;
    return depth > 0 ? t_streams[depth - 1] : 0;
}

void enter_stream(const void* stream) { enter(id_of(stream)); }

void leave_stream() {
    if (t_call_depth > 0) --t_call_depth;
}

void add_stream(const void* stream) { numbered(stream, true); }

void on_stream(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    const auto& data = *static_cast<const rocprofiler_callback_tracing_hip_stream_data_t*>(event.payload);
    const std::uint64_t id = data.stream_id.handle;
    if (event.operation == ROCPROFILER_HIP_STREAM_SET) {
        if (event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
            enter(id);
        else if (event.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
            leave_stream();
    } else if (event.operation == ROCPROFILER_HIP_STREAM_CREATE) {
        {
            const std::lock_guard<ForkMutex> lock(g_stream_ids.mutex);
            g_stream_ids.ids[data.stream_value.ptr] = id;
        }
        register_stream(id);
    }
}

void name_stream(const void* stream, const char* name) {
    std::uint64_t id = 0;  // no stream is the default one
    if (stream != nullptr) {
        const std::lock_guard<ForkMutex> lock(g_stream_ids.mutex);
        const auto found = g_stream_ids.ids.find(stream);
        if (found == g_stream_ids.ids.end()) return;  // not traced
        id = found->second;
    }
    rocpd_register_stream(static_cast<std::int64_t>(id), name);
}

}  // namespace rocpd::client
