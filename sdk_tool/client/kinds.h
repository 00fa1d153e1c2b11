// The kinds of events that the SDK reports, by its own names: their numbers differ between versions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk.h"

namespace rocpd::client {

// Asks the SDK for its kinds; to be called once, before the others.
void learn_kinds();

// The name of a kind of records, such as HIP_RUNTIME_API_EXT.
std::string kind_name(std::uint32_t kind);

// The number of a kind of records or callbacks, 0 where the SDK has none of that name.
std::uint32_t record_kind(const std::string& name);
std::uint32_t callback_kind(const std::string& name);

// The name of a kind of calls without the ending of those whose records hold arguments: HIP_RUNTIME_API_EXT →
// HIP_RUNTIME_API.
std::string base_name(const std::string& name);

// The names of all kinds of records.
std::vector<std::string> record_kinds();

}  // namespace rocpd::client
