#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "kinds.h"

namespace rocpd::client {
namespace {

// What a word of ROCPD_TRACE stands for.
struct Domain {
    const char* word;
    bool by_default;
    std::vector<std::string> kinds;  // of records
};

const std::vector<Domain>& domains() {
    static const auto& only = *new std::vector<Domain>{
        {"hip", true, {"HIP_RUNTIME_API", "HIP_COMPILER_API"}},
        {"hsa", false, {"HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API"}},
        {"kernel", true, {"KERNEL_DISPATCH"}},
        {"memcpy", true, {"MEMORY_COPY"}},
        {"alloc", true, {"MEMORY_ALLOCATION"}},
        {"scratch", true, {"SCRATCH_MEMORY"}},
        {"rccl", true, {"RCCL_API"}},
        {"rocdecode", true, {"ROCDECODE_API"}},
        {"rocjpeg", true, {"ROCJPEG_API"}},
        {"graph", true, {"HIP_GRAPH"}},
        {"event", false, {"HIP_EVENT"}},
        {"ompt", false, {"OMPT"}},
        {"kfd",
         false,
         {"KFD_PAGE_MIGRATE", "KFD_PAGE_FAULT", "KFD_QUEUE", "KFD_EVENT_UNMAP_FROM_GPU", "KFD_EVENT_DROPPED_EVENTS"}},
    };
    return only;
}

bool is_api(const std::string& name) {
    const std::size_t end = name.rfind("_API");
    return end != std::string::npos && end + 4 == name.size();
}

// APIs of libraries that have no word of their own, also those that no SDK had when this was written.
std::vector<std::string> other_apis() {
    std::set<std::string> named = {"MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API", "MARKER_CORE_RANGE_API"};
    for (const Domain& domain : domains()) named.insert(domain.kinds.begin(), domain.kinds.end());
    std::vector<std::string> others;
    for (const std::string& name : record_kinds())
        if (is_api(base_name(name)) && named.count(base_name(name)) == 0) others.push_back(base_name(name));
    return others;
}

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

// Asks for those that the SDK has, with arguments where it has them. Returns whether it has any.
bool ask_for(Settings& s, const std::vector<std::string>& names) {
    bool any = false;
    for (const std::string& name : names) {
        const std::string full = name + "_EXT";
        const std::string& chosen = record_kind(full) != 0 ? full : name;
        if (record_kind(chosen) == 0) continue;
        s.kinds.insert(chosen);
        any = true;
    }
    return any;
}

// The kinds that a word stands for; a word may be a kind itself, by the SDK's own name. None: the word is unknown.
std::vector<std::string> kinds_of(const std::string& word) {
    if (word == "other") return other_apis();
    for (const Domain& domain : domains())
        if (domain.word == word) return domain.kinds;
    if (record_kind(word) != 0) return {base_name(word)};
    return {};
}

void choose(Settings& s, const std::string& word) {
    if (word == "marker") {
        s.marker = true;
    } else if (word == "counters") {
        if (s.counter_names.empty())
            std::fprintf(stderr, "rocpd: ROCPD_TRACE: counters: none is named, as --counters or ROCPD_COUNTERS does\n");
    } else if (const auto kinds = kinds_of(word); kinds.empty() && word != "other") {
        std::fprintf(stderr, "rocpd: ROCPD_TRACE: %s is unknown and left out\n", word.c_str());
    } else if (!ask_for(s, kinds)) {
        std::fprintf(stderr, "rocpd: ROCPD_TRACE: %s: this rocprofiler-sdk reports nothing of that kind\n",
                     word.c_str());
    }
}

}  // namespace

Settings read_settings() {
    Settings s;
    s.counter_names = words("ROCPD_COUNTERS");
    const std::vector<std::string> chosen = words("ROCPD_TRACE");
    s.marker = chosen.empty();
    for (const std::string& word : chosen) choose(s, word);
    if (chosen.empty()) {
        for (const Domain& domain : domains())
            if (domain.by_default) ask_for(s, domain.kinds);
        ask_for(s, other_apis());
    }
    // The values of counters belong to dispatches.
    if (!s.counter_names.empty()) ask_for(s, {"KERNEL_DISPATCH"});
    return s;
}

}  // namespace rocpd::client
