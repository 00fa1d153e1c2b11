// The agents: SDK handles become node ids, as rocprofv3 writes them. HSA is not initialised for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk.h"

namespace rocpd::client {

// Registers all agents with the recorder.
void register_agents();

// What the SDK knows of an agent, as JSON.
std::string agent_facts(rocprofiler_agent_id_t handle);

// Returns the id that events use, -1 for a handle that no agent has.
std::int64_t agent_of(rocprofiler_agent_id_t handle);

const std::vector<rocprofiler_agent_id_t>& gpus();

}  // namespace rocpd::client
