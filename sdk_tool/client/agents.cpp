#include "agents.h"

#include <string>
#include <unordered_map>

#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

// Filled before any context starts and only read from then on.
std::unordered_map<std::uint64_t, std::int64_t>& ids() {
    static auto& only = *new std::unordered_map<std::uint64_t, std::int64_t>;
    return only;
}

std::vector<rocprofiler_agent_id_t>& gpu_list() {
    static auto& only = *new std::vector<rocprofiler_agent_id_t>;
    return only;
}

std::string description(const rocprofiler_agent_v0_t& a) {
    std::string json = "{";
    const auto add = [&](const char* name, std::uint64_t value) {
        json += (json.size() > 1 ? ",\"" : "\"") + std::string(name) + "\":" + std::to_string(value);
    };
    add("cpu_cores_count", a.cpu_cores_count);
    add("simd_count", a.simd_count);
    add("max_waves_per_simd", a.max_waves_per_simd);
    add("lds_size_in_kb", a.lds_size_in_kb);
    add("wave_front_size", a.wave_front_size);
    add("num_xcc", a.num_xcc);
    add("cu_count", a.cu_count);
    add("array_count", a.array_count);
    add("num_shader_banks", a.num_shader_banks);
    add("simd_per_cu", a.simd_per_cu);
    add("gfx_target_version", a.gfx_target_version);
    add("vendor_id", a.vendor_id);
    add("device_id", a.device_id);
    add("location_id", a.location_id);
    add("domain", a.domain);
    add("max_engine_clk_ccompute", a.max_engine_clk_ccompute);
    add("max_engine_clk_fcompute", a.max_engine_clk_fcompute);
    add("max_waves_per_cu", a.max_waves_per_cu);
    add("workgroup_max_size", a.workgroup_max_size);
    add("local_mem_size", a.local_mem_size);
    add("gpu_id", a.gpu_id);
    add("node_id", a.node_id);
    return json + "}";
}

void register_agent(const rocprofiler_agent_v0_t& a) {
    const bool gpu = a.type == ROCPROFILER_AGENT_TYPE_GPU;
    ids()[a.id.handle] = a.node_id;
    if (gpu) gpu_list().push_back(a.id);
    const std::string extdata = description(a);
    rocpd_agent_t agent{};
    agent.id = agent.absolute_index = a.node_id;
    agent.type = gpu ? "GPU" : "CPU";
    agent.logical_index = a.logical_node_id;
    agent.type_index = a.logical_node_type_id;
    agent.uuid = a.gpu_id;
    agent.name = a.name;
    agent.model_name = a.model_name;
    agent.vendor_name = a.vendor_name;
    agent.product_name = agent.user_name = a.product_name;
    agent.extdata = extdata.c_str();
    rocpd_register_agent(&agent);
}

rocprofiler_status_t take(rocprofiler_agent_version_t version, const void** agents, std::size_t count, void*) {
    if (version != ROCPROFILER_AGENT_INFO_VERSION_0) return ROCPROFILER_STATUS_ERROR;
    for (std::size_t i = 0; i < count; ++i) register_agent(*static_cast<const rocprofiler_agent_v0_t*>(agents[i]));
    return ROCPROFILER_STATUS_SUCCESS;
}

}  // namespace

void register_agents() {
    g_sdk.query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, take, sizeof(rocprofiler_agent_v0_t), nullptr);
}

std::int64_t agent_of(rocprofiler_agent_id_t handle) {
    const auto found = ids().find(handle.handle);
    return found != ids().end() ? found->second : -1;
}

const std::vector<rocprofiler_agent_id_t>& gpus() { return gpu_list(); }

}  // namespace rocpd::client
