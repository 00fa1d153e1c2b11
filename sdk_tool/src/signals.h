// Closes the file when a signal ends the process that the program does not handle.
#pragma once

namespace rocpd {

// Whether a signal has no handler and is not ignored.
bool is_unhandled(int number);

// Handles SIGTERM, SIGHUP and SIGABRT where the program has no handler of its own.
void catch_signals();

// The same for SIGINT, at the first event of the program itself: Python handles Ctrl-C only where no handler is set.
void catch_interrupt();

}  // namespace rocpd
