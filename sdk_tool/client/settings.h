// Owns the choice of what to trace: ROCPD_TRACE and ROCPD_COUNTERS.
#pragma once

#include <string>
#include <vector>

namespace rocpd::client {

struct Settings {
    bool hip = true, hsa = false, marker = true, kernel = true, memcpy = true, alloc = true, scratch = true,
         rccl = true, counters = true;
    std::vector<std::string> counter_names;
};

// Reads the environment. Unknown names are reported on stderr and left out.
Settings read_settings();

}  // namespace rocpd::client
