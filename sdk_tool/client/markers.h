// Owns markers: ranges and marks become regions, pause and resume switch the recording, names name things.
#pragma once

#include "sdk.h"

namespace rocpd::client {

// Receives ranges and marks, of either of the SDK's two ways to tell them.
void on_marker(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

// Receives pause and resume; `data` is the context to switch.
void on_marker_control(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

void on_marker_name(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

}  // namespace rocpd::client
