// The choice of what to trace: ROCPD_TRACE and ROCPD_COUNTERS.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace rocpd::client {

struct Settings {
    bool marker = true;
    std::set<std::string> kinds;  // the SDK's names of the records to ask for
    std::vector<std::string> counter_names;
};

// Reads the environment, for an SDK whose kinds are known. What names nothing is reported on stderr and left out.
Settings read_settings();

}  // namespace rocpd::client
