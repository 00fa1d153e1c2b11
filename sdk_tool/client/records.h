// The records in the SDK's buffers: API calls, dispatches, copies, allocations, scratch.
#pragma once

#include "sdk.h"

namespace rocpd::client {

void on_records(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer, rocprofiler_record_header_t** headers,
                std::size_t count, void* data, std::uint64_t dropped);

}  // namespace rocpd::client
