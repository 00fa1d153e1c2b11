// Chooses the moment of a sample. A thread that waits for the interpreter's lock gets it where the running thread
// lets go of it, for loops with a system call always there: such samples would show this call and nothing else. So the
// running thread is interrupted at its next instruction instead.
#pragma once

#include "python.h"

namespace rocpd::python {

// Runs `collect` once with the interpreter's lock held, in this thread or between two instructions of the running one,
// and returns after. Ends this thread when the interpreter ends. To be called by one thread, of the state `state`.
void run_interrupting(ThreadState* state, void (*collect)(void*), void* argument);

// To be called in a forked child, by the thread that forked.
void forget_interrupting();

}  // namespace rocpd::python
