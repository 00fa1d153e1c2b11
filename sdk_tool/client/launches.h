// Owns what a launch knows and its GPU work, which is told much later, does not: enclosing marker and HIP stream.
//
// The SDK carries one number from launch to record, the external correlation id. It is put together here.
#pragma once

#include <cstdint>

#include "rocpd/recorder.h"

namespace rocpd::client {

struct Launch {
    rocpd_text_t marker = 0;   // text of the innermost range of the launching thread
    std::uint64_t stream = 0;  // id
};

// The text takes the low half, the stream the high one: ids of both are small and dense.
constexpr int kTextBits = 32;

inline std::uint64_t pack(const Launch& launch) { return launch.stream << kTextBits | launch.marker; }
inline Launch unpack(std::uint64_t external) {
    return {static_cast<rocpd_text_t>(external & 0xffffffffu), external >> kTextBits};
}

// Of the calling thread.
rocpd_text_t current_marker();
std::uint64_t current_stream();

}  // namespace rocpd::client
