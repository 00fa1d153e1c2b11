// Samples of the call stacks of all Python threads, ROCPD_PYTHON_STACKS times a second.
#pragma once

namespace rocpd {

// Starts the thread where a rate is set and the process holds a Python, unless it runs already.
void start_python_sampling();

// To be called in a forked child, by the thread that forked.
void forget_python_sampling();

}  // namespace rocpd
