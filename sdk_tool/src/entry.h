// The layout of the entries in a ring, which the recording thread writes and the writer reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "ring.h"
#include "rocpd/recorder.h"

namespace rocpd {

enum Kind : std::uint16_t {
    kFiller = 0,
    kPush,       // Head, text
    kPop,        // Head
    kBegin,      // Head, Begun, text
    kEnd,        // Head, number of the range
    kMark,       // Head, text
    kThread,     // Head, text: the thread's name
    kCorrelate,  // Head, number: external correlation id of the ranges and marks that follow
    kRegion,     // Head, rocpd_region_t, message, then per argument: Argument, value
    kDispatch,   // Head, rocpd_dispatch_t, message
    kCopy,       // Head, rocpd_copy_t, message
    kAllocate,   // Head, rocpd_allocation_t, message
    kMarkAs,     // Head, Begun, text
    kGraph,      // Head, rocpd_graph_launch_t, message
    kSample,     // Head, Value
    kCounter,    // Head, Value
    kSamples,    // Head, text of the category (64 bits), Values of tracks: all of one event
    kStack,      // Head, thread (64 bits), call stack as JSON
    kNativeStack, // Head, SampledStack, call stack as JSON, line_info as JSON
};

// Longer texts are cut, and the cut is counted. It must fit into a quarter of the smallest ring.
constexpr std::size_t kLongestText = 32768;

struct Begun {
    std::uint64_t id;           // of the range
    std::uint64_t stack_id;     // 0: the writer assigns one, with the enclosing range as parent
    std::uint64_t parent;
    std::uint64_t correlation;  // external
    std::uint32_t function;     // text, 0: roctxProcessRangeA
    std::uint32_t of_thread;    // 1: ends with its thread at the latest
    std::uint64_t text_size;
};

struct Argument {
    rocpd_text_t type;
    rocpd_text_t name;
    std::uint32_t size;
    std::uint32_t reserved;
};

struct SampledStack {
    std::uint64_t thread;
    std::uint64_t stands_for;  // time of the thread [ns]
    std::uint64_t is_wall;     // 0: that is its CPU time
    std::uint64_t frames_size;
};

struct Value {
    std::int64_t target;  // track, or dispatch
    std::int64_t counter;
    double value;
};

// Returns the part of an entry after its head.
inline const char* after_head(const Head& entry) { return reinterpret_cast<const char*>(&entry) + sizeof(Head); }

template <typename T>
T body(const Head& entry) {
    T value;
    std::memcpy(&value, after_head(entry), sizeof value);
    return value;
}

// Returns the text of an entry that holds nothing else: `flags` counts the bytes of padding after it.
inline std::string_view text_of(const Head& entry) {
    return {after_head(entry), entry.size - sizeof(Head) - entry.flags};
}

}  // namespace rocpd
