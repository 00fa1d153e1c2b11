// HIP graphs: which one the calling thread is launching, and which of its nodes come next.
#pragma once

#include <cstdint>

#include "sdk.h"

namespace rocpd::client {

// Work that a graph launched; graph 0: none did.
struct Node {
    std::uint64_t graph = 0;   // the SDK's number of the executable graph
    std::uint64_t number = 0;  // in the order of launch
};

// Receives starts and ends of launches.
void on_graph(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

// Of the calling thread: the node that is launched now.
Node next_node();

}  // namespace rocpd::client
