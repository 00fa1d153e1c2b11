// Owns what is known only at launch, while records of GPU work come much later: enclosing marker and HIP stream.
//
// The SDK carries two numbers from a launch to its record. The internal correlation id is the key of what is kept here;
// the external one is left to the user.
#pragma once

#include <cstdint>

#include "rocpd/recorder.h"

namespace rocpd::client {

struct Launch {
    rocpd_text_t marker = 0;   // text of the innermost range of the launching thread
    std::uint64_t stream = 0;  // id
};

// Keeps marker and stream of the calling thread for one record of `correlation`.
void remember_launch(std::uint64_t correlation);

// Returns them for one record; called once for each record of a call that launched several operations.
Launch take_launch(std::uint64_t correlation);

// Of the calling thread.
rocpd_text_t current_marker();
std::uint64_t current_stream();

}  // namespace rocpd::client
