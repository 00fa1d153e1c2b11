// Readings of the clocks of the machine, from which clocks of nodes can be aligned later.
#pragma once

#include <cstdint>
#include <string>

namespace rocpd {

// Returns one reading as a JSON object: CLOCK_BOOTTIME, CLOCK_MONOTONIC and CLOCK_REALTIME at one time [ns], within how
// many ns they were read, and what the kernel says of the last one (adjtimex): state, status, maxerror_us, esterror_us.
std::string clock_reading();

// When the next reading is worth a row: at most 256 in each doubling of the time that the process was recorded.
class ReadingPace {
public:
    // Whether one is due at `now` [ns]; then the next one is due later.
    bool is_due(std::uint64_t now);

private:
    std::uint64_t first_ = 0, due_ = 0;  // [ns]
};

}  // namespace rocpd
