#include "kinds.h"

#include <map>

namespace rocpd::client {
namespace {

// Filled before any context starts and only read from then on.
struct Kinds {
    std::map<std::uint32_t, std::string> names;
    std::map<std::string, std::uint32_t> records, callbacks;
};

Kinds& kinds() {
    static Kinds& only = *new Kinds;
    return only;
}

int take_record_kind(rocprofiler_buffer_tracing_kind_t kind, void*) {
    const char* name = nullptr;
    std::uint64_t size = 0;
    if (g_sdk.query_buffer_tracing_kind_name(kind, &name, &size) != ROCPROFILER_STATUS_SUCCESS || name == nullptr)
        return 0;
    kinds().names[static_cast<std::uint32_t>(kind)] = name;
    kinds().records[name] = static_cast<std::uint32_t>(kind);
    return 0;
}

int take_callback_kind(rocprofiler_callback_tracing_kind_t kind, void*) {
    const char* name = nullptr;
    std::uint64_t size = 0;
    if (g_sdk.query_callback_tracing_kind_name(kind, &name, &size) == ROCPROFILER_STATUS_SUCCESS && name != nullptr)
        kinds().callbacks[name] = static_cast<std::uint32_t>(kind);
    return 0;
}

std::uint32_t number(const std::map<std::string, std::uint32_t>& numbers, const std::string& name) {
    const auto found = numbers.find(name);
    return found != numbers.end() ? found->second : 0;
}

}  // namespace

void learn_kinds() {
    g_sdk.iterate_buffer_tracing_kinds(take_record_kind, nullptr);
    if (g_sdk.iterate_callback_tracing_kinds != nullptr && g_sdk.query_callback_tracing_kind_name != nullptr)
        g_sdk.iterate_callback_tracing_kinds(take_callback_kind, nullptr);
}

std::string kind_name(std::uint32_t kind) {
    const auto found = kinds().names.find(kind);
    return found != kinds().names.end() ? found->second : "kind " + std::to_string(kind);
}

std::uint32_t record_kind(const std::string& name) { return number(kinds().records, name); }

std::uint32_t callback_kind(const std::string& name) { return number(kinds().callbacks, name); }

std::string base_name(const std::string& name) {
    const std::size_t end = name.rfind("_EXT");
    return end != std::string::npos && end + 4 == name.size() ? name.substr(0, end) : name;
}

std::vector<std::string> record_kinds() {
    std::vector<std::string> names;
    for (const auto& [name, kind] : kinds().records) names.push_back(name);
    return names;
}

}  // namespace rocpd::client
