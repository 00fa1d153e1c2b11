// Times the samples of a sampling thread, and knows whether there is one.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "clock.h"
#include "lifecycle.h"
#include "state.h"

namespace rocpd {

// Sleeps from one sample to the next.
class Pace {
public:
    explicit Pace(double hz)
        : period_(static_cast<std::uint64_t>(1e9 / hz)), due_(clock_ns(CLOCK_MONOTONIC)) {}

    // Waits for the next sample; one is left out rather than made up for. Returns false when the file is closed.
    bool wait() { return wait(period_); }
    // The same with another distance to this sample [ns].
    bool wait(std::uint64_t distance) {
        due_ += distance;
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (due_ < now) due_ = now;
        sleep_until(due_);
        const Phase phase = g_state.phase.load(std::memory_order_acquire);
        return phase != Phase::kClosed && phase != Phase::kFailed;
    }

private:
    const std::uint64_t period_;  // [ns]
    std::uint64_t due_;           // [ns]
};

// A thread that samples: one in each process. Its body sleeps first: a process that ends before, such as a child that
// only runs another program, leaves no file.
class SamplingThread {
public:
    constexpr SamplingThread(const char* name, void (*body)()) : name_(name), body_(body) {}

    // Starts it unless it runs.
    void start() {
        if (!running_.exchange(true) && !start_service_thread(run, this)) running_.store(false);
    }
    // To be called in a forked child: the thread is the parent's.
    void forget() { running_.store(false); }

private:
    static void* run(void* self) {
        pthread_setname_np(pthread_self(), static_cast<SamplingThread*>(self)->name_);
        static_cast<SamplingThread*>(self)->body_();
        return nullptr;
    }

    const char* name_;
    void (*body_)();
    std::atomic<bool> running_{false};
};

}  // namespace rocpd
