// Markers: ranges and marks become regions, pause and resume switch recording, names go to threads and streams.
#pragma once

#include "sdk.h"

namespace rocpd::client {

// To be called before contexts start.
void name_ranges();

// Whether the program paused recording.
bool is_paused();

// Receives ranges and marks, in either of the SDK's two ways to report them.
void on_marker(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

// Receives pause and resume; `data` is a vector of the contexts to stop and start.
void on_marker_control(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

void on_marker_name(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

}  // namespace rocpd::client
