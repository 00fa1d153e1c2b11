// Owns the thread that has the SDK hand over what it holds: at intervals, and when the recorder asks.
#pragma once

#include <vector>

#include "sdk.h"

namespace rocpd::client {

void start_flusher(const std::vector<rocprofiler_buffer_id_t>& buffers);

// Returns when the SDK has handed over what it held, or after two seconds. Takes no lock, calls nothing of the SDK: the
// caller may be a signal handler in a thread that the SDK has locked something for.
void hand_over();

// Hands over one last time, in the calling thread, and ends. Safe to call twice.
void stop_flusher();

}  // namespace rocpd::client
