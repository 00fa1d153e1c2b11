// Owns the clock: every time in a file comes from here.
#pragma once

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

}  // namespace rocpd
