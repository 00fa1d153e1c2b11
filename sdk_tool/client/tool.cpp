// Owns the client's life: rocprofiler-sdk finds rocprofiler_configure, calls initialize, and at the end finalize.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "agents.h"
#include "code_objects.h"
#include "counters.h"
#include "flusher.h"
#include "launches.h"
#include "markers.h"
#include "records.h"
#include "rocpd/recorder.h"
#include "sdk.h"
#include "settings.h"
#include "streams.h"

namespace rocpd::client {
namespace {

constexpr std::size_t kBufferBytes = 4 << 20;
// The SDK's ids never reach this; ids of ranges that come from rocpd.record and others start here.
constexpr std::uint64_t kOwnStackIds = std::uint64_t{1} << 48;

struct Client {
    Settings settings;
    rocprofiler_context_id_t main{};     // what is traced
    rocprofiler_context_id_t objects{};  // code objects and pauses: needed while nothing is traced too
    std::vector<rocprofiler_buffer_id_t> buffers;
    std::atomic<bool> running{false};
    pid_t pid = 0;
};

Client& client() {
    static Client& only = *new Client;
    return only;
}

bool good(rocprofiler_status_t status) { return status == ROCPROFILER_STATUS_SUCCESS; }

void callbacks(rocprofiler_context_id_t context, rocprofiler_callback_tracing_kind_t kind,
               rocprofiler_callback_tracing_cb_t callback, void* data = nullptr) {
    if (!good(g_sdk.configure_callback_tracing_service(context, kind, nullptr, 0, callback, data)))
        std::fprintf(stderr, "rocpd: this rocprofiler-sdk does not report events of kind %d\n", static_cast<int>(kind));
}

bool make_buffer(rocprofiler_buffer_id_t& buffer) {
    if (!good(g_sdk.create_buffer(client().main, kBufferBytes, kBufferBytes - kBufferBytes / 8,
                                  ROCPROFILER_BUFFER_POLICY_LOSSLESS, on_records, nullptr, &buffer)))
        return false;
    rocprofiler_callback_thread_t thread{};
    if (g_sdk.create_callback_thread != nullptr && g_sdk.assign_callback_thread != nullptr &&
        good(g_sdk.create_callback_thread(&thread)))
        g_sdk.assign_callback_thread(buffer, thread);
    client().buffers.push_back(buffer);
    return true;
}

bool buffered(rocprofiler_buffer_tracing_kind_t kind, rocprofiler_buffer_id_t buffer) {
    return good(g_sdk.configure_buffer_tracing_service(client().main, kind, nullptr, 0, buffer));
}

void trace_calls(const Settings& s, rocprofiler_buffer_id_t buffer) {
    if (s.hip) {
        // With arguments where the SDK has them.
        if (!buffered(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, buffer))
            buffered(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, buffer);
        if (!buffered(ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT, buffer))
            buffered(ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API, buffer);
    }
    if (s.hsa)
        for (const auto kind :
             {ROCPROFILER_BUFFER_TRACING_HSA_CORE_API, ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API,
              ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API, ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API})
            buffered(kind, buffer);
    if (s.rccl) buffered(ROCPROFILER_BUFFER_TRACING_RCCL_API, buffer);
    if (s.alloc) buffered(ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION, buffer);
    if (s.scratch) buffered(ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY, buffer);
}

// Called once for each dispatch and copy, in the thread that launches it. Sets no id: the user's stays.
int on_launch(rocprofiler_thread_id_t, rocprofiler_context_id_t, rocprofiler_external_correlation_id_request_kind_t,
              rocprofiler_tracing_operation_t, std::uint64_t correlation, rocprofiler_user_data_t*, void*) {
    remember_launch(correlation);
    return 1;
}

// The id of rocpd_correlate becomes the SDK's external correlation id of the calling thread.
void on_correlate(std::uint64_t id) {
    static thread_local bool pushed = false;
    const auto thread = static_cast<rocprofiler_thread_id_t>(syscall(SYS_gettid));
    rocprofiler_user_data_t external{};
    if (pushed) g_sdk.pop_external_correlation_id(client().main, thread, &external);
    external.value = id;
    pushed = id != 0;
    if (pushed) g_sdk.push_external_correlation_id(client().main, thread, external);
}

void trace_gpu(const Settings& s, rocprofiler_buffer_id_t buffer) {
    if (s.kernel) buffered(ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, buffer);
    if (s.memcpy) buffered(ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, buffer);
    if (!s.kernel && !s.memcpy) return;
    callbacks(client().main, ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, on_stream);
    const rocprofiler_external_correlation_id_request_kind_t kinds[] = {
        ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH,
        ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY};
    if (g_sdk.configure_external_correlation_id_request_service != nullptr)
        g_sdk.configure_external_correlation_id_request_service(client().main, kinds, 2, on_launch, nullptr);
}

void trace_markers() {
    if (!good(g_sdk.configure_callback_tracing_service(
            client().main, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, nullptr, 0, on_marker, nullptr)))
        callbacks(client().main, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, on_marker);
    callbacks(client().main, ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, on_marker_name);
    callbacks(client().objects, ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, on_marker_control, &client().main);
}

// Threads that the SDK starts inherit the mask: no signal handler of the application runs on them.
thread_local sigset_t t_signals;

void before_sdk_thread(rocprofiler_runtime_library_t, void*) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &t_signals);
}

void after_sdk_thread(rocprofiler_runtime_library_t, void*) { pthread_sigmask(SIG_SETMASK, &t_signals, nullptr); }

int initialize(rocprofiler_client_finalize_t, void*) {
    Client& c = client();
    c.pid = getpid();
    c.settings = read_settings();
    register_agents();
    rocprofiler_buffer_id_t calls{}, work{};
    if (!good(g_sdk.create_context(&c.main)) || !good(g_sdk.create_context(&c.objects)) || !make_buffer(calls) ||
        !make_buffer(work)) {
        std::fprintf(stderr, "rocpd: rocprofiler-sdk refuses a context; GPU work is not recorded\n");
        return -1;
    }
    callbacks(c.objects, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, on_code_object);
    if (c.settings.marker) trace_markers();
    trace_calls(c.settings, calls);
    trace_gpu(c.settings, work);
    if (c.settings.counters && !c.settings.counter_names.empty()) collect_counters(c.main, c.settings.counter_names);
    rocpd_start_as_configured();
    c.running.store(true);
    start_flusher(c.buffers);
    g_sdk.start_context(c.objects);
    // The context runs while recording is off too: `rocpd control start` must find the current streams and markers.
    g_sdk.start_context(c.main);
    rocpd_before_flush(flush_pending);
    if (g_sdk.push_external_correlation_id != nullptr && g_sdk.pop_external_correlation_id != nullptr)
        rocpd_on_correlate(on_correlate);
    return 0;
}

void finalize(void*) {
    Client& c = client();
    if (c.pid != getpid() || !c.running.exchange(false)) return;
    g_sdk.stop_context(c.main);
    g_sdk.stop_context(c.objects);
    stop_flusher();
    rocpd_finalize();
}

__attribute__((constructor)) void at_load() {
    if (find_sdk() || sdk_is_installed()) {
        // Before the first range, which may come long before the SDK calls initialize.
        rocpd_own_stack_ids_from(kOwnStackIds);
    } else if (std::getenv("ROCPD_TOOL_WARNED") == nullptr) {
        // Reported once for a program and all that it starts.
        setenv("ROCPD_TOOL_WARNED", "1", 0);
        std::fprintf(stderr, "rocpd: no rocprofiler-sdk on this machine; GPU work is not recorded\n");
    }
}

}  // namespace
}  // namespace rocpd::client

extern "C" __attribute__((visibility("default"))) rocprofiler_tool_configure_result_t* rocprofiler_configure(
    std::uint32_t version, const char* runtime_version, std::uint32_t, rocprofiler_client_id_t* id) {
    using namespace rocpd::client;
    id->name = "rocpd";
    if (version < 10000 || !find_sdk()) {
        std::fprintf(stderr, "rocpd: rocprofiler-sdk %s is too old, 1.0 (ROCm 7) is needed; GPU work is not recorded\n",
                     runtime_version != nullptr ? runtime_version : "?");
        return nullptr;
    }
    if (g_sdk.at_internal_thread_create != nullptr)
        g_sdk.at_internal_thread_create(before_sdk_thread, after_sdk_thread, ROCPROFILER_LIBRARY, nullptr);
    static rocprofiler_tool_configure_result_t result{sizeof(rocprofiler_tool_configure_result_t), initialize, finalize,
                                                      nullptr};
    return &result;
}
