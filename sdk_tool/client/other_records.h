// Records that are neither calls nor kernels, copies and memory: what the driver (KFD) and HIP's events did, and
// records of later SDKs, whose layout nobody told us. They become regions.
#pragma once

#include "sdk.h"

namespace rocpd::client {

// Records it; false where the record is one of a call.
bool take_other(const rocprofiler_record_header_t& header);

}  // namespace rocpd::client
