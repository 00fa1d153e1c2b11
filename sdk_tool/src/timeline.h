// The writer's state of a thread: its open ranges, and the correlation id that its next events get.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rocpd {

// A range that has started and not ended.
struct Open {
    std::uint64_t start = 0;        // [ns]
    std::uint64_t stack_id = 0;
    std::uint64_t parent = 0;       // stack id of the enclosing range or call, 0: none
    std::uint64_t correlation = 0;  // external
    std::uint32_t tid = 0;
    std::uint32_t function = 0;     // text
    bool of_thread = false;         // ends with its thread at the latest
    std::string text;
};

struct Timeline {
    bool has_row = false;           // in rocpd_info_thread
    std::uint64_t correlation = 0;  // external correlation id of the next events
    std::vector<Open> ranges;       // outermost first; those beyond `depth` are unused, their strings keep their memory
    std::size_t depth = 0;
};

}  // namespace rocpd
