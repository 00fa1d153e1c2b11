// Waits for a word of memory to change. Takes no lock: usable in signal handlers.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace rocpd {

// Waits while `word` is `value`, at most so many microseconds; may return early.
inline void futex_wait_us(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t us) {
    timespec limit{static_cast<time_t>(us / 1000000), static_cast<long>(us % 1000000) * 1000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ms) {
    futex_wait_us(word, value, ms * 1000);
}

inline void futex_wake(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace rocpd
