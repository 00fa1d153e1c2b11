// The samplers: of Python's call stacks, of those of C and C++, of GPUs, of the process and its machine.
#pragma once

namespace rocpd {

// Starts those that have a rate, when recording is on and they do not run already.
void start_sampling();

// To be called in a forked child: the threads are the parent's.
void forget_sampling();

}  // namespace rocpd
