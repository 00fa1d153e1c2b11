#include "streams.h"

#include <mutex>
#include <string>
#include <unordered_map>

#include "launches.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

constexpr int kDeepest = 64;

// HIP calls nest: each sets its stream on entry and the previous one comes back on return.
thread_local std::uint64_t t_streams[kDeepest];
thread_local int t_depth = 0;

struct Known {
    std::mutex mutex;
    std::unordered_map<const void*, std::uint64_t> ids;  // by hipStream_t
};

Known& known() {
    static Known& only = *new Known;
    return only;
}

}  // namespace

std::uint64_t current_stream() {
    const int depth = t_depth < kDeepest ? t_depth : kDeepest;
    return depth > 0 ? t_streams[depth - 1] : 0;
}

void on_stream(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    const auto& data = *static_cast<const rocprofiler_callback_tracing_hip_stream_data_t*>(event.payload);
    const std::uint64_t id = data.stream_id.handle;
    if (event.operation == ROCPROFILER_HIP_STREAM_SET) {
        if (event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
            if (t_depth < kDeepest) t_streams[t_depth] = id;
            ++t_depth;
        } else if (event.phase == ROCPROFILER_CALLBACK_PHASE_EXIT && t_depth > 0) {
            --t_depth;
        }
    } else if (event.operation == ROCPROFILER_HIP_STREAM_CREATE) {
        {
            const std::lock_guard<std::mutex> lock(known().mutex);
            known().ids[data.stream_value.ptr] = id;
        }
        const std::string name = id == 0 ? "Default Stream" : "Stream " + std::to_string(id);
        rocpd_register_stream(static_cast<std::int64_t>(id), name.c_str());
    }
}

void name_stream(const void* stream, const char* name) {
    std::uint64_t id = 0;  // no stream is the default one
    {
        const std::lock_guard<std::mutex> lock(known().mutex);
        const auto found = known().ids.find(stream);
        if (found == known().ids.end() && stream != nullptr) return;  // not traced
        if (found != known().ids.end()) id = found->second;
    }
    rocpd_register_stream(static_cast<std::int64_t>(id), name);
}

}  // namespace rocpd::client
