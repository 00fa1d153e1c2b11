// Code objects and the kernels in them.
#pragma once

#include "sdk.h"

namespace rocpd::client {

void on_code_object(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t* user, void* data);

}  // namespace rocpd::client
