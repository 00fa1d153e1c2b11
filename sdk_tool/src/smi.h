// Samples of the GPUs of this node through libamd_smi, ROCPD_SMI times a second.
#pragma once

namespace rocpd {

// Starts the thread where a rate is set, unless it runs already.
void start_smi();

// To be called in a forked child.
void forget_smi();

}  // namespace rocpd
