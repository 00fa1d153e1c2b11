#include "markers.h"

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "launches.h"
#include "rocpd/recorder.h"
#include "streams.h"

namespace rocpd::client {
namespace {

struct Range {
    rocpd_text_t text;
    std::uint64_t start;
    std::uint64_t id;      // correlation id
    std::uint64_t parent;  // that of the enclosing range or call
    std::uint32_t tid;
};

constexpr int kDeepest = 1024;

// Open ranges of this thread. Plain memory: made without allocation when the thread is.
thread_local Range t_ranges[kDeepest];
thread_local int t_depth = 0;

// Ranges that may end in another thread.
struct Shared {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Range> ranges;
};

Shared& shared() {
    static Shared& only = *new Shared;
    return only;
}

rocpd_text_t text_of(const char* text) { return text != nullptr ? rocpd_text(text, std::strlen(text)) : 0; }

rocpd_text_t name(const char* text) { return text_of(text); }

void record(const Range& range, std::uint64_t end, rocpd_text_t category, rocpd_text_t function) {
    rocpd_region_t region{};
    region.event.category = category;
    region.event.tid = range.tid;
    region.event.stack_id = range.id;
    region.event.parent_stack_id = range.parent;
    region.event.message_text = range.text;
    region.name = function;
    region.start = range.start;
    region.end = end;
    rocpd_region(&region);
}

rocpd_text_t range_category() {
    static const rocpd_text_t only = name("MARKER_CORE_RANGE_API");
    return only;
}

Range range_of(const rocprofiler_callback_tracing_record_t& record, const char* text) {
    return {text_of(text), rocpd_now(), record.correlation_id.internal, record.correlation_id.ancestor,
            static_cast<std::uint32_t>(record.thread_id)};
}

void push(const rocprofiler_callback_tracing_record_t& record, const char* text) {
    if (t_depth < kDeepest) t_ranges[t_depth] = range_of(record, text);
    ++t_depth;
}

void pop() {
    static const rocpd_text_t function = name("roctxThreadRangeA");
    if (t_depth == 0 || --t_depth >= kDeepest) return;
    record(t_ranges[t_depth], rocpd_now(), range_category(), function);
}

void begin(std::uint64_t id, const Range& range) {
    const std::lock_guard<std::mutex> lock(shared().mutex);
    shared().ranges[id] = range;
}

void end(std::uint64_t id) {
    static const rocpd_text_t function = name("roctxProcessRangeA");
    Range range{};
    {
        const std::lock_guard<std::mutex> lock(shared().mutex);
        const auto found = shared().ranges.find(id);
        if (found == shared().ranges.end()) return;
        range = found->second;
        shared().ranges.erase(found);
    }
    record(range, rocpd_now(), range_category(), function);
}

void mark(const rocprofiler_callback_tracing_record_t& event, const char* text) {
    static const rocpd_text_t category = name("MARKER_CORE_API");
    static const rocpd_text_t function = name("roctxMarkA");
    const Range range = range_of(event, text);
    record(range, range.start, category, function);
}

// One callback pair per range: entered when it begins, left when it ends.
void on_range(const rocprofiler_callback_tracing_record_t& event, const char* text) {
    const bool enters = event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
    switch (event.operation) {
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA: return enters ? push(event, text) : pop();
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA:
            return enters ? begin(event.correlation_id.internal, range_of(event, text))
                          : end(event.correlation_id.internal);
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA:
            if (enters) mark(event, text);
            return;
        default: return;
    }
}

// One callback pair per function call, as SDKs before the range API tell it.
void on_call(const rocprofiler_callback_tracing_record_t& event,
             const rocprofiler_callback_tracing_marker_api_data_t& data) {
    const bool enters = event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
    const char* text = data.args.roctxMarkA.message;
    switch (event.operation) {
        case ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA: return enters ? mark(event, text) : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA: return enters ? push(event, text) : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop: return enters ? pop() : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA:
            if (!enters) begin(data.retval.roctx_range_id_t_retval, range_of(event, text));
            return;
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop:
            if (enters) end(data.args.roctxRangeStop.id);
            return;
        default: return;
    }
}

}  // namespace

rocpd_text_t current_marker() {
    const int depth = t_depth < kDeepest ? t_depth : kDeepest;
    return depth > 0 ? t_ranges[depth - 1].text : 0;
}

void on_marker(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    const auto& data = *static_cast<const rocprofiler_callback_tracing_marker_api_data_t*>(event.payload);
    if (event.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API)
        on_range(event, data.args.roctxMarkA.message);
    else
        on_call(event, data);
}

void on_marker_control(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void* context) {
    const rocprofiler_context_id_t main = *static_cast<const rocprofiler_context_id_t*>(context);
    if (event.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause &&
        event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
        // Work that was launched before the pause is still to be told: the recorder goes on taking it.
        g_sdk.stop_context(main);
    } else if (event.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume &&
               event.phase == ROCPROFILER_CALLBACK_PHASE_EXIT) {
        rocpd_start();
        g_sdk.start_context(main);
    }
}

void on_marker_name(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    if (event.phase != ROCPROFILER_CALLBACK_PHASE_ENTER) return;
    const auto& data = *static_cast<const rocprofiler_callback_tracing_marker_api_data_t*>(event.payload);
    const char* given = data.args.roctxMarkA.message;
    if (given == nullptr) return;
    switch (event.operation) {
        case ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread: return rocpd_name_thread(given, std::strlen(given));
        case ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream:
            return name_stream(data.args.roctxNameHipStream.stream, given);
        case ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice:
            return rocpd_note(("hip_device_" + std::to_string(data.args.roctxNameHipDevice.device_id)).c_str(), given);
        case ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent: return rocpd_note("hsa_agent", given);
        default: return;
    }
}

}  // namespace rocpd::client
