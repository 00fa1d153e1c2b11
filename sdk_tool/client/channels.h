// Channels: a context with buffers that records come through. A forked child takes the next one, made beforehand as
// the SDK makes no buffer later: that of its parent holds its parent's records, and maybe locks of threads that the
// child does not have.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sdk.h"

namespace rocpd::client {

struct Channel {
    rocprofiler_context_id_t context{};
    std::vector<rocprofiler_buffer_id_t> buffers;
};

// Makes all channels; `first_call` is called before the first call that comes through one in each process.
bool make_channels(const std::set<std::string>& kinds, void (*first_call)());

// The one of this process.
const Channel& channel();

// Leaves the one of the parent in a forked child. Returns false where there is no further one.
bool take_next_channel();

// Whether records with this user data belong to this process.
bool is_own(const void* data);

}  // namespace rocpd::client
