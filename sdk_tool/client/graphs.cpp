#include "graphs.h"

#include <cstring>

namespace rocpd::client {
namespace {

// As the public interface of later SDKs has them.
constexpr rocprofiler_tracing_operation_t kLaunch = 3;

struct Payload {
    std::uint64_t size, graph;
};

constexpr int kDeepest = 8;

// Launches nest where a graph's callback launches another.
thread_local Node t_launches[kDeepest];
thread_local int t_depth = 0;

}  // namespace

void on_graph(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    if (event.operation != kLaunch || event.payload == nullptr) return;
    if (event.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
        Payload payload{};
        std::memcpy(&payload, event.payload, sizeof payload);
        if (t_depth < kDeepest) t_launches[t_depth] = {payload.graph, 0};
        ++t_depth;
    } else if (event.phase == ROCPROFILER_CALLBACK_PHASE_EXIT && t_depth > 0) {
        --t_depth;
    }
}

Node next_node() {
    if (t_depth == 0 || t_depth > kDeepest) return {};
    Node& launch = t_launches[t_depth - 1];
    const Node node = launch;
    ++launch.number;
    return node;
}

}  // namespace rocpd::client
