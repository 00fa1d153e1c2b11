// Owns waiting for a word of memory to change. Takes no lock: usable in signal handlers.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace rocpd {

// Waits while `word` is `value`, at most `ms`; may return early.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t ms) {
    timespec limit{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace rocpd
