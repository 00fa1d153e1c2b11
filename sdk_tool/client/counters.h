// Owns hardware counters: which are collected on which GPU, and their values per dispatch.
#pragma once

#include <string>
#include <vector>

#include "sdk.h"

namespace rocpd::client {

// Collects the counters of these names for every dispatch. Names that no GPU has are reported on stderr.
void collect_counters(rocprofiler_context_id_t context, const std::vector<std::string>& names);

}  // namespace rocpd::client
