#include "guid.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "clock.h"

namespace rocpd {
namespace {

std::uint64_t random_bits() {
    std::uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof bits)) return bits;
    // Early in boot, or without that system call: clocks and pid differ between processes.
    bits = clock_ns(CLOCK_MONOTONIC) * 0x9E3779B97F4A7C15u;
    return bits ^ (static_cast<std::uint64_t>(getpid()) << 40) ^ clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace

std::string new_guid() {
    const std::uint64_t time = clock_ns(CLOCK_REALTIME);
    const std::uint64_t ms = time / 1000000;
    const auto fraction = static_cast<unsigned>((time % 1000000) * 4096 / 1000000);  // order within a millisecond
    const std::uint64_t random = random_bits();
    char text[40];
    std::snprintf(text, sizeof text, "%08llx-%04llx-7%03x-%04llx-%012llx", static_cast<unsigned long long>(ms >> 16),
                  static_cast<unsigned long long>(ms & 0xffff), fraction & 0xfff,
                  static_cast<unsigned long long>(0x8000u | (random >> 50)),
                  static_cast<unsigned long long>(random & 0xffffffffffffu));
    return text;
}

std::string suffix_of(const std::string& guid) {
    std::string suffix = "_" + guid;
    std::replace(suffix.begin(), suffix.end(), '-', '_');
    return suffix;
}

}  // namespace rocpd
