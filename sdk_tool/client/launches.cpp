#include "launches.h"

#include <atomic>

#include "pending.h"

namespace rocpd::client {
namespace {

thread_local std::uint64_t t_correlation = 0;

Pending<Launch>& pending() {
    static auto& only = *new Pending<Launch>;
    return only;
}

bool leaves_record_behind(rocprofiler_external_correlation_id_request_kind_t kind) {
    return kind == ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH ||
           kind == ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY ||
           kind == ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION;
}

// Called once for each call, dispatch, copy and allocation, in the thread that makes it.
int on_request(rocprofiler_thread_id_t, rocprofiler_context_id_t,
               rocprofiler_external_correlation_id_request_kind_t kind, rocprofiler_tracing_operation_t,
               std::uint64_t correlation, rocprofiler_user_data_t* external, void*) {
    static std::atomic<bool> expected{false};
    if (!expected.load(std::memory_order_relaxed) && !expected.exchange(true)) rocpd_expect_events();
    if (leaves_record_behind(kind)) pending().keep(correlation, {current_marker(), current_stream()});
    external->value = t_correlation;
    return 0;
}

}  // namespace

void follow_launches(rocprofiler_context_id_t context) {
    if (g_sdk.configure_external_correlation_id_request_service != nullptr)
        g_sdk.configure_external_correlation_id_request_service(context, nullptr, 0, on_request, nullptr);
}

Launch take_launch(std::uint64_t correlation) { return pending().take(correlation); }

void set_correlation(std::uint64_t id) { t_correlation = id; }

std::uint64_t current_correlation() { return t_correlation; }

}  // namespace rocpd::client
