// Starts threads that no signal handler of the application runs on, and that stand in the way of none of its calls.
#pragma once

namespace rocpd {

// Starts a detached thread with all signals blocked. Returns false when the system allows no further thread.
//
// It has a working directory and a root of its own: the kernel lets a process into another mount namespace (setns) only
// while no other thread shares those with the caller. Returns when that is so.
bool start_detached(void* (*body)(void*), void* argument);

}  // namespace rocpd
