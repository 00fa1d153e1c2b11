// The client's life: rocprofiler-sdk finds rocprofiler_configure, calls initialize, and at the end finalize.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "agents.h"
#include "arguments.h"
#include "channels.h"
#include "code_objects.h"
#include "collectives.h"
#include "counters.h"
#include "flusher.h"
#include "forks.h"
#include "graphs.h"
#include "kinds.h"
#include "launches.h"
#include "markers.h"
#include "records.h"
#include "rocpd/recorder.h"
#include "sdk.h"
#include "settings.h"
#include "streams.h"

namespace rocpd::client {
namespace {

// The SDK's ids never reach this; ids of ranges that come from rocpd.record and others start here.
constexpr std::uint64_t kOwnStackIds = std::uint64_t{1} << 48;

struct Client {
    Settings settings;
    rocprofiler_context_id_t counting{};  // counters: cannot start where another tool counts
    // Needed while nothing is traced too: code objects, streams, which ranges are open, pauses.
    rocprofiler_context_id_t always{};
    std::vector<rocprofiler_context_id_t> pausable;  // the first is that of the channel
    std::atomic<bool> running{false};
    pid_t pid = 0;
};

Client& client() {
    static Client& only = *new Client;
    return only;
}

void callbacks(rocprofiler_callback_tracing_kind_t kind, rocprofiler_callback_tracing_cb_t callback,
               void* data = nullptr) {
    if (!good(g_sdk.configure_callback_tracing_service(client().always, kind, nullptr, 0, callback, data)))
        std::fprintf(stderr, "rocpd: this rocprofiler-sdk does not report events of kind %d\n", static_cast<int>(kind));
}

void trace_markers() {
    name_ranges();
    if (!good(g_sdk.configure_callback_tracing_service(
            client().always, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, nullptr, 0, on_marker, nullptr)))
        callbacks(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, on_marker);
    callbacks(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, on_marker_name);
    callbacks(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, on_marker_control, &client().pausable);
}

// Which graph kernels and copies belong to is known during its launch.
void trace_graphs() {
    rocpd_use_graphs();
    if (const std::uint32_t kind = callback_kind("HIP_GRAPH"))
        callbacks(static_cast<rocprofiler_callback_tracing_kind_t>(kind), on_graph);
}

// Another tool may have what we ask for.
void start(rocprofiler_context_id_t context, const char* lost) {
    const rocprofiler_status_t status = g_sdk.start_context(context);
    if (good(status)) return;
    const bool conflict = status == ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
    std::fprintf(stderr, "rocpd: %s: rocprofiler-sdk refuses (status %d%s)\n", lost, static_cast<int>(status),
                 conflict ? ", another tool in this process uses the same service" : "");
}

bool make_contexts(Client& c) {
    for (rocprofiler_context_id_t* context : {&c.counting, &c.always})
        if (!good(g_sdk.create_context(context))) return false;
    return true;
}

// Threads that the SDK starts inherit the mask: no signal handler of the application runs on them.
thread_local sigset_t t_signals;

void before_sdk_thread(rocprofiler_runtime_library_t, void*) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &t_signals);
}

void after_sdk_thread(rocprofiler_runtime_library_t, void*) { pthread_sigmask(SIG_SETMASK, &t_signals, nullptr); }

// In a forked child, too: the SDK makes its threads anew there, ours starts when there is something to deliver.
void at_first_call() {
    client().pid = getpid();
    start_flusher();
    rocpd_before_flush(flush_pending);
    rocpd_expect_events();
}

void trace_nothing(const char* why) {
    Client& c = client();
    c.running.store(false);
    for (const rocprofiler_context_id_t context : {c.counting, c.always}) g_sdk.stop_context(context);
    std::fprintf(stderr, "rocpd: process %d and its children are recorded without GPU work and roctx: %s\n",
                 static_cast<int>(getpid()), why);
}

void prepare_child() {
    const bool calls_return = after_fork_in_child();
    Client& c = client();
    if (!c.running.load()) return;
    forget_flusher();
    forget_first_call();
    g_sdk.stop_context(channel().context);
    const bool is_left = take_next_channel();
    if (!calls_return) {
        limit_exit();
        return trace_nothing("it was forked while another thread held a lock of rocprofiler-sdk");
    }
    if (!is_left) return trace_nothing("too many forks lead to it");
    c.pausable.front() = channel().context;
    if (!is_paused()) start(channel().context, "GPU work is not recorded");
}

int initialize(rocprofiler_client_finalize_t, void*) {
    Client& c = client();
    c.pid = getpid();
    learn_kinds();
    c.settings = read_settings();
    register_agents();
    if (!make_contexts(c) || !make_channels(c.settings.kinds, at_first_call)) {
        std::fprintf(stderr, "rocpd: rocprofiler-sdk refuses a context; GPU work is not recorded\n");
        return -1;
    }
    callbacks(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, on_code_object);
    if (!follow_arguments(c.always)) callbacks(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, on_stream);
    c.pausable = {channel().context};
    if (c.settings.marker) trace_markers();
    prepare_trial();
    if (c.settings.kinds.count("HIP_GRAPH") != 0) trace_graphs();
    if (c.settings.kinds.count("RCCL_API") != 0)
        follow_collectives(c.always, c.settings.kinds.count("KERNEL_DISPATCH") != 0);
    const bool counts = !c.settings.counter_names.empty() && collect_counters(c.counting, c.settings.counter_names);
    rocpd_start_as_configured();
    c.running.store(true);
    start_flusher();
    start(c.always, "markers, streams and the names of kernels are missing");
    // The contexts run while recording is off too: `rocpd control start` must find the current streams and markers.
    start(channel().context, "GPU work is not recorded");
    if (counts) {
        start(c.counting, "counters are not recorded, everything else is");
        c.pausable.push_back(c.counting);
    }
    rocpd_before_flush(flush_pending);
    pthread_atfork(before_fork, after_fork_in_parent, prepare_child);
    return 0;
}

void finalize(void*) {
    Client& c = client();
    if (c.pid != getpid() || !c.running.exchange(false)) return;
    for (const rocprofiler_context_id_t context : {channel().context, c.counting, c.always})
        g_sdk.stop_context(context);
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
