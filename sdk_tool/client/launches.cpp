#include "launches.h"

#include <atomic>

#include "forks.h"
#include "pending.h"

namespace rocpd::client {
namespace {

std::atomic<bool> g_called{false};
void (*g_first_call)() = nullptr;

Pending<Launch>& g_pending = *new Pending<Launch>;

void keep(rocprofiler_external_correlation_id_request_kind_t kind, std::uint64_t correlation) {
    switch (kind) {
        case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH:
            return g_pending.keep(correlation,
                                  {current_marker(), current_stream(), next_node(), launched_by_collective()});
        case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY:
            return g_pending.keep(correlation, {current_marker(), current_stream(), next_node(), nullptr});
        case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION:
            return g_pending.keep(correlation, {current_marker(), current_stream(), {}, nullptr});
        default: return;
    }
}

// Called once for each call, dispatch, copy and allocation, in the thread that makes it.
int on_request(rocprofiler_thread_id_t, rocprofiler_context_id_t,
               rocprofiler_external_correlation_id_request_kind_t kind, rocprofiler_tracing_operation_t,
               std::uint64_t correlation, rocprofiler_user_data_t* external, void*) {
    pass_forks();
    if (!g_called.load(std::memory_order_relaxed) && !g_called.exchange(true)) g_first_call();
    keep(kind, correlation);
    // The SDK's own stack of numbers would give threads that set none that of the main thread.
    external->value = rocpd_correlation();
    return 0;
}

}  // namespace

void follow_launches(rocprofiler_context_id_t context, void (*first_call)()) {
    g_first_call = first_call;
    if (g_sdk.configure_external_correlation_id_request_service != nullptr)
        g_sdk.configure_external_correlation_id_request_service(context, nullptr, 0, on_request, nullptr);
}

void forget_first_call() { g_called.store(false); }

Launch take_launch(std::uint64_t correlation) {
    std::uint64_t number = 0;
    Launch launch = g_pending.take(correlation, number);
    end_of_work(launch.batch);
    launch.node.number += number;  // a graph's kernels have one call; they end in the order of their launch, as a rule
    return launch;
}

}  // namespace rocpd::client
