// The switches that every recorded event reads, and waking the writer.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "futex.h"

namespace rocpd {

enum class Phase : int {
    kIdle,     // no writer yet in this process
    kRunning,
    kClosed,   // the file is complete
    kFailed,   // the file could not be written; nothing more is taken
};

struct State {
    std::atomic<bool> recording{false};
    std::atomic<Phase> phase{Phase::kIdle};
    std::atomic<pid_t> pid{0};               // owner of this memory: a child of vfork() only shares it
    std::atomic<std::uint32_t> wake{0};      // 1: the writer has work to do before its interval ends
    std::atomic<std::uint32_t> asked{0};     // flushes asked for
    std::atomic<std::uint32_t> done{0};      // flushes done
    std::atomic<bool> finish{false};         // asked to close the file
    std::atomic<std::uint32_t> finished{0};
    std::atomic<std::uint32_t> progress{0};  // counts up while the writer makes progress
    std::atomic<bool> graphs{false};           // new files have the tables and columns of graphs
    std::atomic<std::uint64_t> unbuffered{0};  // events that were lost because their thread got no buffer
};

extern State g_state;

inline void wake_writer() {
    if (g_state.wake.exchange(1, std::memory_order_acq_rel) == 0) futex_wake(g_state.wake);
}

// Whether this process owns the recorder's memory.
inline bool is_owner() { return g_state.pid.load(std::memory_order_relaxed) == getpid(); }

}  // namespace rocpd
