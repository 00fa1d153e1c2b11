// Owns the Unix socket through which `rocpd control` starts, stops and flushes a running process, or asks its status.
#pragma once

namespace rocpd {

void start_control();

// Removes the socket of this process. Takes no lock and allocates nothing.
void remove_control();

// To be called in a forked child: the socket belongs to the parent.
void forget_control();

}  // namespace rocpd
