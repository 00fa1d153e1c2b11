// Starts threads that no signal handler of the application runs on.
#pragma once

namespace rocpd {

// Starts a detached thread with all signals blocked. Returns false when the system allows no further thread.
bool start_detached(void* (*body)(void*), void* argument);

}  // namespace rocpd
