// The arguments of calls.
//
// A record of a call holds the arguments as they were passed, and the SDK turns them into text when it is asked to. By
// then a text that was passed by address may be gone. So texts are copied during the call, in a callback, and the
// record is read without them. Which calls pass texts, and where, is learnt from the SDK itself: it is asked for the
// text of records in which every argument is zero. Calls that wait for the GPU are followed too, for the state file.
#pragma once

#include <string>
#include <vector>

#include "rocpd/recorder.h"
#include "sdk.h"

namespace rocpd::client {

// Learns the arguments of all calls whose records have some, and has the SDK call back during those that pass texts or
// streams, in this context. False where the SDK says nothing of HIP's streams by arguments.
bool follow_arguments(rocprofiler_context_id_t context);

// The arguments of one call.
struct Arguments {
    std::vector<rocpd_argument_t> list;
    std::vector<std::string> values;
};

// Reads those of a record; none where its kind has no arguments.
void read_arguments(const rocprofiler_record_header_t& header, Arguments& arguments);

}  // namespace rocpd::client
