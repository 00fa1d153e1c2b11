// The Unix socket through which `rocpd control` starts, stops and flushes a running process, or asks its status.
#pragma once

#include <string>

namespace rocpd {

// Returns why the folder of sockets and locks cannot be used, empty when it can: it must belong to this user alone. It
// is made where there is none.
std::string problem_with(const std::string& folder);

void start_control();

// Removes the socket of this process. Takes no lock and allocates nothing.
void remove_control();

// To be called in a forked child: the socket belongs to the parent.
void forget_control();

}  // namespace rocpd
