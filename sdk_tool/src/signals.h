// Owns closing the file when the process is asked to end by a signal that nobody else handles.
#pragma once

namespace rocpd {

// Takes over signals that would end the process, where the program has not: SIGTERM, SIGHUP, SIGABRT.
void catch_signals();

// The same for SIGINT, at the first event of the program itself: Python sets up Ctrl-C only where nobody has before.
void catch_interrupt();

}  // namespace rocpd
