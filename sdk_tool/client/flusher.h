// The thread that makes the SDK deliver the records it holds: at intervals, and when the recorder asks.
#pragma once

namespace rocpd::client {

// Idempotent.
void start_flusher();

// For forked children: the thread is the parent's until it is started again.
void forget_flusher();

// Returns when the SDK has delivered the records it held, or after two seconds. Takes no lock and calls no function of
// the SDK: the caller may be a signal handler in a thread that holds a lock of the SDK.
void flush_pending();

// Delivers one last time, in the calling thread, and ends the thread. Idempotent.
void stop_flusher();

}  // namespace rocpd::client
