// Owns what the writer knows of a thread: its open ranges and what it was told to put on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rocpd {

// A range that has begun.
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
    std::uint64_t correlation = 0;  // external correlation id of what comes
    std::vector<Open> ranges;       // outermost first; beyond `depth`, strings are kept for the next range
    std::size_t depth = 0;
};

}  // namespace rocpd
