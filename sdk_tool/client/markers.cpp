#include "markers.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "forks.h"
#include "launches.h"
#include "names.h"
#include "rocpd/recorder.h"
#include "streams.h"

namespace rocpd::client {
namespace {

constexpr int kDeepest = 1024;

struct Level {
    rocpd_text_t text;
    std::uint64_t range;     // the recorder's number, 0: not recorded
    std::uint64_t stack_id;
};

// Open ranges of this thread. Plain memory: made without allocation when the thread is. Kept while recording is paused
// too: a range may start in a pause and end after it, or the other way round.
thread_local Level t_levels[kDeepest];
thread_local int t_depth = 0;

std::atomic<bool> g_paused{false};
ForkMutex& g_switching = *new ForkMutex;  // contexts

rocpd_text_t g_thread_range = 0, g_process_range = 0;  // how the SDK calls ranges

// The range or call around a marker: one that is in the file, where the innermost is not.
std::uint64_t parent_of(const rocprofiler_callback_tracing_record_t& event) {
    const std::uint64_t around = event.correlation_id.ancestor;
    int depth = t_depth < kDeepest ? t_depth : kDeepest;
    if (depth == 0 || t_levels[depth - 1].stack_id != around) return around;
    while (depth > 0 && t_levels[depth - 1].range == 0) --depth;
    return depth > 0 ? t_levels[depth - 1].stack_id : 0;
}

rocpd_range_t described(const rocprofiler_callback_tracing_record_t& event, const char* text) {
    rocpd_range_t range{};
    range.text = text;
    range.text_size = text != nullptr ? std::strlen(text) : 0;
    range.stack_id = event.correlation_id.internal;
    range.parent_stack_id = parent_of(event);
    range.correlation_id = rocpd_correlation();
    return range;
}

// Starts a range, which the recorder ends at the latest. Returns its number, 0 in a pause.
std::uint64_t open(const rocprofiler_callback_tracing_record_t& event, const char* text, rocpd_text_t function) {
    if (g_paused.load()) return 0;
    rocpd_range_t range = described(event, text);
    range.function = function;
    range.of_thread = function == g_thread_range ? 1 : 0;
    return rocpd_range_open(&range);
}

void push(const rocprofiler_callback_tracing_record_t& event, const char* text) {
    const std::uint64_t range = open(event, text, g_thread_range);
    if (t_depth < kDeepest) t_levels[t_depth] = {text_of(text), range, event.correlation_id.internal};
    ++t_depth;
}

void pop() {
    if (t_depth > 0 && --t_depth < kDeepest) rocpd_range_end(t_levels[t_depth].range);
}

void mark(const rocprofiler_callback_tracing_record_t& event, const char* text) {
    if (g_paused.load() || text == kTrial) return;
    const rocpd_range_t as = described(event, text);
    rocpd_mark_as(&as);
}

// One callback pair per range: entered when it starts, left when it ends. The SDK carries `user` from one to the other.
void on_range(const rocprofiler_callback_tracing_record_t& event, const char* text, rocprofiler_user_data_t& user) {
    const bool enters = event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
    switch (event.operation) {
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA: return enters ? push(event, text) : pop();
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA:
            if (enters)
                user.value = open(event, text, g_process_range);
            else
                rocpd_range_end(user.value);
            return;
        case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA:
            if (enters) mark(event, text);
            return;
        default: return;
    }
}

// Ranges that are reported as calls and may end in another thread: roctx's number -> the recorder's.
struct Shared {
    ForkMutex mutex;
    std::unordered_map<std::uint64_t, std::uint64_t> ranges;
};

Shared& g_shared = *new Shared;

void begin(std::uint64_t id, std::uint64_t range) {
    const std::lock_guard<ForkMutex> lock(g_shared.mutex);
    g_shared.ranges[id] = range;
}

void end(std::uint64_t id) {
    const std::lock_guard<ForkMutex> lock(g_shared.mutex);
    const auto found = g_shared.ranges.find(id);
    if (found == g_shared.ranges.end()) return;
    rocpd_range_end(found->second);
    g_shared.ranges.erase(found);
}

// One callback pair per function call, as SDKs before the range API report markers.
void on_call(const rocprofiler_callback_tracing_record_t& event,
             const rocprofiler_callback_tracing_marker_api_data_t& data) {
    const bool enters = event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER;
    const char* text = data.args.roctxMarkA.message;
    switch (event.operation) {
        case ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA: return enters ? mark(event, text) : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA: return enters ? push(event, text) : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop: return enters ? pop() : void();
        case ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA:
            if (!enters) begin(data.retval.roctx_range_id_t_retval, open(event, text, g_process_range));
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
    return depth > 0 ? t_levels[depth - 1].text : 0;
}

void name_ranges() {
    g_thread_range = text_of("roctxThreadRangeA");
    g_process_range = text_of("roctxProcessRangeA");
}

bool is_paused() { return g_paused.load(); }

void on_marker(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t* user, void*) {
    pass_forks();
    const auto& data = *static_cast<const rocprofiler_callback_tracing_marker_api_data_t*>(event.payload);
    if (event.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API)
        on_range(event, data.args.roctxMarkA.message, *user);
    else
        on_call(event, data);
}

void on_marker_control(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void* data) {
    const auto& contexts = *static_cast<const std::vector<rocprofiler_context_id_t>*>(data);
    const std::lock_guard<ForkMutex> lock(g_switching);
    if (event.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause &&
        event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
        // Work that was launched before the pause is reported later: the recorder goes on taking it.
        g_paused.store(true);
        for (const rocprofiler_context_id_t context : contexts) g_sdk.stop_context(context);
    } else if (event.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume &&
               event.phase == ROCPROFILER_CALLBACK_PHASE_EXIT) {
        rocpd_start();
        for (const rocprofiler_context_id_t context : contexts) g_sdk.start_context(context);
        g_paused.store(false);
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
