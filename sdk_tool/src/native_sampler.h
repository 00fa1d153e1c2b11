// Samples of the call stacks of C and C++: ROCPD_STACKS times a second of each thread's CPU time, or ROCPD_STACKS_WALL
// times a second.
#pragma once

namespace rocpd {

// Starts the thread where a rate is set, unless it runs already.
void start_native_sampling();

// To be called in a forked child.
void forget_native_sampling();

}  // namespace rocpd
