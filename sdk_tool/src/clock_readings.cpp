#include "clock_readings.h"

#include <sys/timex.h>

#include <algorithm>

#include "clock.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kLeast = 400000000;  // [ns] between two readings
constexpr int kTries = 5;

struct Triple {
    std::uint64_t boottime, monotonic, realtime, within;
};

// The clocks are read one after the other; the try that took least time counts.
Triple read_clocks() {
    Triple best{0, 0, 0, UINT64_MAX};
    for (int i = 0; i < kTries; ++i) {
        const std::uint64_t before = now_ns();
        const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), realtime = clock_ns(CLOCK_REALTIME);
        const std::uint64_t within = now_ns() - before;
        if (within < best.within) best = {before + within / 2, monotonic, realtime, within};
    }
    return best;
}

}  // namespace

std::string clock_reading() {
    const Triple clocks = read_clocks();
    timex kernel{};
    const int state = adjtimex(&kernel);  // changes nothing: no mode is set
    std::string json = "{\"boottime\":" + std::to_string(clocks.boottime) +
                       ",\"monotonic\":" + std::to_string(clocks.monotonic) +
                       ",\"realtime\":" + std::to_string(clocks.realtime) +
                       ",\"within_ns\":" + std::to_string(clocks.within);
    if (state >= 0)
        json += ",\"state\":" + std::to_string(state) + ",\"status\":" + std::to_string(kernel.status) +
                ",\"maxerror_us\":" + std::to_string(kernel.maxerror) +
                ",\"esterror_us\":" + std::to_string(kernel.esterror);
    return json + "}";
}

bool ReadingPace::is_due(std::uint64_t now) {
    if (first_ == 0) first_ = now;
    if (now < due_) return false;
    due_ = now + std::max(kLeast, (now - first_) / 256);
    return true;
}

}  // namespace rocpd
