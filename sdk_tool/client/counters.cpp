#include "counters.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <unordered_map>

#include "agents.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

// Filled before the context starts and only read from then on.
std::unordered_map<std::uint64_t, rocprofiler_counter_config_id_t>& configs() {
    static auto& only = *new std::unordered_map<std::uint64_t, rocprofiler_counter_config_id_t>;
    return only;
}

rocprofiler_status_t take_counters(rocprofiler_agent_id_t, rocprofiler_counter_id_t* counters, std::size_t count,
                                   void* data) {
    static_cast<std::vector<rocprofiler_counter_id_t>*>(data)->assign(counters, counters + count);
    return ROCPROFILER_STATUS_SUCCESS;
}

// Counters are numbered by architecture, and a row has one agent: the first that has the counter, as in rocprofv3's
// files.
void register_counter(const rocprofiler_counter_info_v0_t& info, rocprofiler_agent_id_t agent) {
    static auto& registered = *new std::set<std::uint64_t>;
    if (!registered.insert(info.id.handle).second) return;
    rocpd_counter_t counter{};
    counter.id = static_cast<std::int64_t>(info.id.handle);
    counter.agent_id = agent_of(agent);
    counter.target_arch = "GPU";
    counter.name = info.name;
    counter.description = info.description;
    counter.component = "rocm";
    counter.value_type = "ABS";
    counter.block = info.block;
    counter.expression = info.expression;
    counter.is_constant = info.is_constant;
    counter.is_derived = info.is_derived;
    const std::string facts = agent_facts(agent);
    counter.extdata = facts.c_str();
    rocpd_register_counter(&counter);
}

// Returns the names that the agent has.
std::vector<std::string> configure(rocprofiler_agent_id_t agent, const std::vector<std::string>& names) {
    std::vector<rocprofiler_counter_id_t> all, chosen;
    std::vector<std::string> found;
    g_sdk.iterate_agent_supported_counters(agent, take_counters, &all);
    for (const rocprofiler_counter_id_t id : all) {
        rocprofiler_counter_info_v0_t info{};
        if (g_sdk.query_counter_info(id, ROCPROFILER_COUNTER_INFO_VERSION_0, &info) != ROCPROFILER_STATUS_SUCCESS)
            continue;
        if (std::find(names.begin(), names.end(), info.name) == names.end()) continue;
        chosen.push_back(id);
        found.emplace_back(info.name);
        register_counter(info, agent);
    }
    rocprofiler_counter_config_id_t config{};
    if (!chosen.empty()) {
        if (g_sdk.create_counter_config(agent, chosen.data(), chosen.size(), &config) == ROCPROFILER_STATUS_SUCCESS)
            configs()[agent.handle] = config;
        else
            std::fprintf(stderr, "rocpd: these counters cannot be collected together on agent %lld\n",
                         static_cast<long long>(agent_of(agent)));
    }
    return found;
}

void choose(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_config_id_t* config,
            rocprofiler_user_data_t*, void*) {
    const auto found = configs().find(dispatch.dispatch_info.agent_id.handle);
    if (found != configs().end()) *config = found->second;
}

// One value per instance of the counter's hardware block.
void take_values(rocprofiler_dispatch_counting_service_data_t dispatch, rocprofiler_counter_record_t* records,
                 std::size_t count, rocprofiler_user_data_t, void*) {
    for (std::size_t i = 0; i < count; ++i) {
        rocprofiler_counter_id_t counter{};
        if (g_sdk.query_record_counter_id(records[i].id, &counter) == ROCPROFILER_STATUS_SUCCESS)
            rocpd_counter_value(static_cast<std::int64_t>(dispatch.dispatch_info.dispatch_id),
                                static_cast<std::int64_t>(counter.handle), records[i].counter_value);
    }
}

}  // namespace

bool collect_counters(rocprofiler_context_id_t context, const std::vector<std::string>& names) {
    if (g_sdk.iterate_agent_supported_counters == nullptr || g_sdk.query_counter_info == nullptr ||
        g_sdk.create_counter_config == nullptr || g_sdk.query_record_counter_id == nullptr ||
        g_sdk.configure_callback_dispatch_counting_service == nullptr) {
        std::fprintf(stderr, "rocpd: this rocprofiler-sdk cannot collect counters\n");
        return false;
    }
    std::vector<std::string> found;
    for (const rocprofiler_agent_id_t agent : gpus())
        for (std::string& name : configure(agent, names)) found.push_back(std::move(name));
    for (const std::string& name : names)
        if (std::find(found.begin(), found.end(), name) == found.end())
            std::fprintf(stderr, "rocpd: no GPU has a counter %s\n", name.c_str());
    return !configs().empty() && g_sdk.configure_callback_dispatch_counting_service(
                                     context, choose, nullptr, take_values, nullptr) == ROCPROFILER_STATUS_SUCCESS;
}

}  // namespace rocpd::client
