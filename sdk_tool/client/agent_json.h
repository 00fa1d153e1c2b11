// The description of an agent as JSON: all that the SDK knows, under the SDK's own names.
#pragma once

#include <string>

#include "sdk.h"

namespace rocpd::client {

// AMD's readers of rocpd files fail where a name is missing, and expect them in this order.
std::string agent_json(const rocprofiler_agent_v0_t& agent);

}  // namespace rocpd::client
