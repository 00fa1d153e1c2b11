// Owns what a launch knows and its GPU work, which is told much later, does not: enclosing marker and HIP stream.
//
// The SDK carries two numbers from a launch to its record. The internal correlation id leads to the marker and stream
// that are kept here; the external one is left to the user.
#pragma once

#include <cstdint>

#include "rocpd/recorder.h"

namespace rocpd::client {

struct Launch {
    rocpd_text_t marker = 0;   // text of the innermost range of the launching thread
    std::uint64_t stream = 0;  // id
};

// Keeps what the calling thread knows, for one record of `correlation`.
void remember_launch(std::uint64_t correlation);

// Gives it for one record; a call that launched several is asked once for each.
Launch take_launch(std::uint64_t correlation);

// Of the calling thread.
rocpd_text_t current_marker();
std::uint64_t current_stream();

}  // namespace rocpd::client
