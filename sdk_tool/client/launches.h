// Keeps what is known only at launch, while records of GPU work come much later: enclosing marker and HIP stream, and
// the user's number of the launching thread, which the SDK carries to the record.
//
// The SDK carries two numbers from a launch to its record. The internal correlation id is the key of what is kept here;
// the external one is the user's.
#pragma once

#include <cstdint>

#include <memory>

#include "collectives.h"
#include "graphs.h"
#include "rocpd/recorder.h"
#include "sdk.h"

namespace rocpd::client {

struct Launch {
    rocpd_text_t marker = 0;   // text of the innermost range of the launching thread
    std::uint64_t stream = 0;  // id
    Node node;
    std::shared_ptr<Batch> batch;  // operations of RCCL that it is a part of
};

// Has the SDK ask for the user's number at each call and launch, in its thread. Launches are remembered. `first_call`
// is called before the first of them in each process.
void follow_launches(rocprofiler_context_id_t context, void (*first_call)());

// To be called in a forked child, whose first call is still to come.
void forget_first_call();

// Returns what was known for one record; called once for each record of a call that launched several operations.
Launch take_launch(std::uint64_t correlation);

// Of the calling thread.
rocpd_text_t current_marker();
std::uint64_t current_stream();

}  // namespace rocpd::client
