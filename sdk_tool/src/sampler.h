// Owns samples of the process's CPU time and memory, ROCPD_SAMPLE_HZ times a second.
#pragma once

namespace rocpd {

// Starts the thread when a rate is set and recording is on; in a forked child too.
void start_sampling();

}  // namespace rocpd
