// Hardware counters: which are collected on which GPU, and their values per dispatch.
#pragma once

#include <string>
#include <vector>

#include "sdk.h"

namespace rocpd::client {

// Has the counters of these names collected for every dispatch while `context` runs. Names that no GPU has are reported
// on stderr. Returns whether there is anything to collect.
bool collect_counters(rocprofiler_context_id_t context, const std::vector<std::string>& names);

}  // namespace rocpd::client
