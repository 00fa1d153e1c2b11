// Samples of the process and its machine, ROCPD_SAMPLE_HZ times a second.
#pragma once

namespace rocpd {

// Starts the thread where a rate is set, unless it runs already.
void start_host_samples();

// To be called in a forked child.
void forget_host_samples();

}  // namespace rocpd
