#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rocpd::client {
namespace {

std::vector<std::string> words(const char* name) {
    const char* value = std::getenv(name);
    const std::string text = value != nullptr ? value : "";
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find_first_of(", \t", at), text.size());
        if (end > at) found.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return found;
}

void choose(Settings& s, const std::vector<std::string>& chosen) {
    if (chosen.empty()) return;
    s.hip = s.hsa = s.marker = s.kernel = s.memcpy = s.alloc = s.scratch = s.rccl = s.counters = false;
    const std::vector<std::pair<std::string, bool*>> known = {
        {"hip", &s.hip},     {"hsa", &s.hsa},         {"marker", &s.marker}, {"kernel", &s.kernel},
        {"memcpy", &s.memcpy}, {"alloc", &s.alloc},   {"scratch", &s.scratch}, {"rccl", &s.rccl},
        {"counters", &s.counters},
    };
    for (const std::string& word : chosen) {
        const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == word; });
        if (found != known.end())
            *found->second = true;
        else
            std::fprintf(stderr, "rocpd: ROCPD_TRACE: %s is unknown and left out\n", word.c_str());
    }
}

}  // namespace

Settings read_settings() {
    Settings s;
    s.counter_names = words("ROCPD_COUNTERS");
    choose(s, words("ROCPD_TRACE"));
    // Naming counters asks for them, and their values belong to dispatches.
    if (!s.counter_names.empty()) s.counters = s.kernel = true;
    return s;
}

}  // namespace rocpd::client
