// Owns HIP streams: their ids, their names, and the current one of the calling thread.
#pragma once

#include "sdk.h"

namespace rocpd::client {

void on_stream(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

// Registers the name of the hipStream_t `stream`.
void name_stream(const void* stream, const char* name);

}  // namespace rocpd::client
