#include "flusher.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "channels.h"
#include "forks.h"
#include "futex.h"
#include "rocpd/recorder.h"
#include "thread.h"

namespace rocpd::client {
namespace {

constexpr int kPatience = 40;           // of 50 ms
constexpr std::uint64_t kSliceMs = 50;

struct Flusher {
    std::atomic<bool> running{false};
    std::atomic<std::uint32_t> asked{0};
    std::atomic<std::uint32_t> done{0};
    std::atomic<std::uint32_t> ended{1};  // 0: the thread is there
};

Flusher& flusher() {
    static Flusher& only = *new Flusher;
    return only;
}

// The SDK delivers a buffer when it is nearly full. A killed process may lose one flush interval at most, so the SDK is
// asked twice in each.
std::uint64_t interval_ms() { return std::max<std::uint64_t>(rocpd_flush_ms(), 2) / 2; }

void flush_all() {
    const Delivery delivery;
    for (const rocprofiler_buffer_id_t buffer : channel().buffers) g_sdk.flush_buffer(buffer);
}

void* flush_at_intervals(void*) {
    pthread_setname_np(pthread_self(), "rocpd-flusher");
    Flusher& f = flusher();
    const std::uint64_t interval = interval_ms();
    while (f.running.load()) {
        const std::uint32_t asked = f.asked.load();
        if (asked == f.done.load()) futex_wait(f.asked, asked, interval);
        const std::uint32_t ticket = f.asked.load();
        if (f.running.load()) flush_all();
        f.done.store(ticket);
        futex_wake(f.done);
    }
    f.ended.store(1);
    futex_wake(f.ended);
    return nullptr;
}

}  // namespace


void forget_flusher() {
    Flusher& f = flusher();
    f.running.store(false);
    f.done.store(f.asked.load());
    f.ended.store(1);
}

void start_flusher() {
    Flusher& f = flusher();
    if (f.running.exchange(true)) return;
    f.ended.store(0);
    if (!start_detached(flush_at_intervals, nullptr)) f.ended.store(1);
}

void flush_pending() {
    Flusher& f = flusher();
    if (!f.running.load()) return;
    const std::uint32_t ticket = f.asked.fetch_add(1) + 1;
    futex_wake(f.asked);
    for (int slice = 0; slice < kPatience && f.running.load(); ++slice) {
        const std::uint32_t done = f.done.load();
        if (static_cast<std::int32_t>(done - ticket) >= 0) return;
        futex_wait(f.done, done, kSliceMs);
    }
}

void stop_flusher() {
    Flusher& f = flusher();
    if (!f.running.exchange(false)) return;
    f.asked.fetch_add(1);
    futex_wake(f.asked);
    // The thread may be delivering records right now: they must not be lost.
    for (int slice = 0; slice < kPatience && f.ended.load() == 0; ++slice) futex_wait(f.ended, 0, kSliceMs);
    flush_all();
}

}  // namespace rocpd::client
