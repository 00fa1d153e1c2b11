// How to get from a frame to that of its caller where no table says it, as in hand-written assembly and in code that a
// program makes itself: the code is followed from where it is to the instruction that returns.
#pragma once

#include <cstdint>

#include "cfi.h"

namespace rocpd::cfi {

// Finds the rule of the instruction at an address. Returns false where no way to a return is found.
bool follow_code(std::uint64_t address, Rule& rule);

// Whether a call stands before an address: else nothing returns to it.
bool follows_call(std::uint64_t address);

}  // namespace rocpd::cfi
