// HIP streams: their ids, their names, and the current one of the calling thread.
//
// Which stream a call works on is one of its arguments. The SDK's own service of streams is used where it does not show
// arguments: until version 1.0 it ends programs that use a stream which it did not see made, such as the stream that
// each thread has.
#pragma once

#include "sdk.h"

namespace rocpd::client {

// The calling thread works on `stream`, a hipStream_t, until it leaves it. Calls nest.
void enter_stream(const void* stream);
void leave_stream();

// A new stream has this hipStream_t, which an earlier one may have had before.
void add_stream(const void* stream);

// Receives the SDK's own service.
void on_stream(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

// Registers the name of the hipStream_t `stream`.
void name_stream(const void* stream, const char* name);

}  // namespace rocpd::client
