// Owns the functions that a tool registered, for a tool that holds events back.
#pragma once

#include <cstdint>

namespace rocpd {

// Has the tool deliver the events that it holds. Safe in signal handlers.
void deliver_held();

// Passes on what rocpd_correlate set for the calling thread.
void pass_on_correlation(std::uint64_t id);

}  // namespace rocpd
