#include "agents.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "agent_json.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

struct Known {
    std::int64_t id;
    std::string facts;
};

// Filled before any context starts and only read from then on.
std::unordered_map<std::uint64_t, Known>& known() {
    static auto& only = *new std::unordered_map<std::uint64_t, Known>;
    return only;
}

std::vector<rocprofiler_agent_id_t>& gpu_list() {
    static auto& only = *new std::vector<rocprofiler_agent_id_t>;
    return only;
}

void register_agent(const rocprofiler_agent_v0_t& a) {
    const bool gpu = a.type == ROCPROFILER_AGENT_TYPE_GPU;
    if (gpu) gpu_list().push_back(a.id);
    const std::string facts = agent_json(a);
    rocpd_agent_t agent{};
    agent.id = agent.absolute_index = a.node_id;
    agent.type = gpu ? "GPU" : "CPU";
    agent.logical_index = a.logical_node_id;
    agent.type_index = a.logical_node_type_id;
    agent.uuid = a.device_id;  // as rocprofv3 writes it
    agent.name = a.name;
    agent.model_name = a.model_name;
    agent.vendor_name = a.vendor_name;
    agent.product_name = agent.user_name = a.product_name;
    agent.extdata = facts.c_str();
    rocpd_register_agent(&agent);
    known()[a.id.handle] = {a.node_id, facts};
}

// The SDK's struct may be shorter or longer than ours: what it lacks is zero.
rocprofiler_status_t take(rocprofiler_agent_version_t version, const void** agents, std::size_t count, void*) {
    if (version != ROCPROFILER_AGENT_INFO_VERSION_0) return ROCPROFILER_STATUS_ERROR;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t size = 0;
        std::memcpy(&size, agents[i], sizeof size);
        rocprofiler_agent_v0_t agent{};
        std::memcpy(&agent, agents[i], std::min<std::size_t>(size, sizeof agent));
        register_agent(agent);
    }
    return ROCPROFILER_STATUS_SUCCESS;
}

}  // namespace

void register_agents() {
    // The SDK refuses a struct that is larger than its own. All versions have what stands before `runtime_visibility`.
    rocprofiler_status_t status = ROCPROFILER_STATUS_ERROR;
    for (const std::size_t size :
         {sizeof(rocprofiler_agent_v0_t), offsetof(rocprofiler_agent_v0_t, runtime_visibility)}) {
        status = g_sdk.query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, take, size, nullptr);
        if (status == ROCPROFILER_STATUS_SUCCESS) break;
    }
    if (known().empty())
        std::fprintf(stderr, "rocpd: this rocprofiler-sdk names no agents (status %d): GPU work is on nameless ones\n",
                     static_cast<int>(status));
}

std::int64_t agent_of(rocprofiler_agent_id_t handle) {
    const auto found = known().find(handle.handle);
    return found != known().end() ? found->second.id : -1;
}

std::string agent_facts(rocprofiler_agent_id_t handle) {
    const auto found = known().find(handle.handle);
    return found != known().end() ? found->second.facts : "{}";
}

const std::vector<rocprofiler_agent_id_t>& gpus() { return gpu_list(); }

}  // namespace rocpd::client
