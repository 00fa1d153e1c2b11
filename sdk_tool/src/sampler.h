// Owns samples of the process's CPU time and memory, ROCPD_SAMPLE_HZ times a second.
#pragma once

namespace rocpd {

// Starts the thread when a rate is set and recording is on, unless it runs already.
void start_sampling();

// To be called in a forked child: the thread is the parent's.
void forget_sampling();

}  // namespace rocpd
