// The function that a tool registered, for a tool that holds events back.
#pragma once

namespace rocpd {

// Has the tool deliver the events that it holds. Safe in signal handlers.
void deliver_held();

}  // namespace rocpd
