// Owns the layout of entries in a ring: what the recording thread writes and the writer reads.
#pragma once

#include <cstdint>

#include "ring.h"
#include "rocpd/recorder.h"

namespace rocpd {

enum Kind : std::uint16_t {
    kFiller = 0,
    kPush,     // Head, text
    kPop,      // Head
    kBegin,    // Head, Numbered, text
    kEnd,      // Head, Numbered
    kMark,     // Head, text
    kThread,   // Head, text: the thread's name
    kRegion,   // Head, rocpd_region_t, message, then per argument: Argument, value
    kDispatch, // Head, rocpd_dispatch_t, message
    kCopy,     // Head, rocpd_copy_t, message
    kAllocate, // Head, rocpd_allocation_t, message
    kSample,   // Head, Value
    kCounter,  // Head, Value
};

// A text longer than this is cut, and the cut is counted. It has to fit a quarter of the smallest ring.
constexpr std::size_t kLongestText = 32768;

struct Numbered {
    std::uint64_t id;
    std::uint64_t text_size;
};

struct Text {
    std::uint64_t size;
    std::uint64_t reserved;
};

struct Argument {
    rocpd_text_t type;
    rocpd_text_t name;
    std::uint32_t size;
    std::uint32_t reserved;
};

struct Value {
    std::int64_t target;  // track, or dispatch
    std::int64_t counter;
    double value;
};

}  // namespace rocpd
