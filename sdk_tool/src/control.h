// Owns the Unix socket through which `rocpd control` starts, stops, flushes and asks a running process.
#pragma once

namespace rocpd {

void start_control();

// Removes the socket of this process. Takes no lock and allocates nothing.
void remove_control();

// In a forked child: the socket is the parent's.
void forget_control();

}  // namespace rocpd
