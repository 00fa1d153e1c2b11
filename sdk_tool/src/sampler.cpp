#include "sampler.h"

#include "host_samples.h"
#include "native_sampler.h"
#include "python_sampler.h"
#include "smi.h"
#include "state.h"

namespace rocpd {

void start_sampling() {
    if (!g_state.recording.load()) return;
    start_host_samples();
    start_python_sampling();
    start_native_sampling();
    start_smi();
}

void forget_sampling() {
    forget_host_samples();
    forget_python_sampling();
    forget_native_sampling();
    forget_smi();
}

}  // namespace rocpd
