// The clock: every time in a file comes from here.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace rocpd {

// CLOCK_BOOTTIME, as rocprofiler-sdk: files of both lie on one time line.
inline std::uint64_t clock_ns(clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t now_ns() { return clock_ns(CLOCK_BOOTTIME); }

// Sleeps until a time of CLOCK_MONOTONIC [ns].
inline void sleep_until(std::uint64_t due) {
    const timespec until{static_cast<time_t>(due / 1000000000), static_cast<long>(due % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

}  // namespace rocpd
