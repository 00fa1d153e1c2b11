#include "python_lock.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstdint>

#include "clock.h"
#include "config.h"
#include "futex.h"
#include "lifecycle.h"

namespace rocpd::python {
namespace {

// Until Python 3.11, a thread that waits for the lock asks for it after the switch interval. This is shortened while
// the sampling thread starts to wait. Not for longer: meanwhile each waiting thread asks again and again.
namespace interval {

constexpr unsigned long kShort = 11;      // less is hardly a sleep, and a busy machine would not get on meanwhile [us]
constexpr std::uint64_t kLate = 100'000;  // a sample that has not come by then waits for a call of C [ns]

std::atomic<unsigned long> g_usual{kShort};
std::atomic<std::uint64_t> g_shortened{0};  // when it was last [ns of CLOCK_MONOTONIC]
std::atomic<bool> g_is_watched{false};

void restore() {
    if (interface()->switch_interval() == kShort) interface()->set_switch_interval(g_usual.load());
}

// The sampling thread itself restores the interval, unless it has to wait for long, or for ever. This thread looks once
// for each sample, at the time when that should be there: waking it would take longer than the sample.
void* watch(void*) {
    pthread_setname_np(pthread_self(), "rocpd-interval");
    const auto period = static_cast<std::uint64_t>(1e9 / config().python_hz);
    for (;;) {
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        std::uint64_t due = g_shortened.load() + kLate;
        if (due <= now) due += ((now - due) / period + 1) * period;
        sleep_until(due);
        if (clock_ns(CLOCK_MONOTONIC) >= g_shortened.load() + kLate) restore();
    }
}

void shorten() {
    if (!g_is_watched.load()) {
        if (!start_service_thread(watch, nullptr)) return;
        g_is_watched.store(true);
        prctl(PR_SET_TIMERSLACK, 1);  // this thread, which sleeps 50 us more otherwise
    }
    const unsigned long now = interface()->switch_interval();
    if (now != kShort) g_usual.store(now);
    g_shortened.store(clock_ns(CLOCK_MONOTONIC));
    interface()->set_switch_interval(kShort);
}

void forget() {
    g_is_watched.store(false);
    restore();
}

}  // namespace interval

// Since Python 3.12, a call can be left for the running thread, which does it before its next instruction.
namespace call {

constexpr std::uint64_t kPatience = 200;  // for a thread that runs Python code; one in a call of C comes later [us]

struct Job {
    void (*collect)(void*);
    void* argument;
};

// What has become of the job. The interpreter's lock is no guard: who does the job may lose it meanwhile.
enum : std::uint32_t { kDone, kWanted, kBegun };

Job g_job;  // written while it is done
std::atomic<std::uint32_t> g_job_state{kDone};
std::atomic<bool> g_is_queued{false};  // Python holds few calls: there is one at most

void do_job() {
    std::uint32_t wanted = kWanted;
    if (!g_job_state.compare_exchange_strong(wanted, kBegun)) return;
    g_job.collect(g_job.argument);
    g_job_state.store(kDone);
    futex_wake(g_job_state);
}

// May come late: when the sample has been taken, in a forked child, or at the end of the interpreter.
int run(void*) {
    g_is_queued.store(false);
    if (interface()->is_finalizing != nullptr && interface()->is_finalizing() != 0) return 0;
    do_job();
    return 0;
}

bool leave() {
    if (g_is_queued.exchange(true)) return false;  // the thread has run no Python code since
    const Interface& python = *interface();
    const int code = python.add_call_for_any != nullptr
                         ? python.add_call_for_any(python.main_interpreter(), run, nullptr, 0)
                         : python.add_call(run, nullptr);
    if (code != 0) g_is_queued.store(false);
    return code == 0;
}

void run_or_leave(ThreadState* state, void (*collect)(void*), void* argument) {
    const Interface& python = *interface();
    g_job = {collect, argument};
    g_job_state.store(kWanted);
    if (leave()) futex_wait_us(g_job_state, kWanted, kPatience);
    if (g_job_state.load() == kWanted) {
        python.restore(state);
        do_job();
        python.save();
    }
    while (g_job_state.load() == kBegun) futex_wait(g_job_state, kBegun, 100);
}

void forget() {
    g_job_state.store(kDone);
    g_is_queued.store(false);
}

}  // namespace call

}  // namespace

void run_interrupting(ThreadState* state, void (*collect)(void*), void* argument) {
    const Interface& python = *interface();
    if (python.add_call != nullptr || python.add_call_for_any != nullptr)
        return call::run_or_leave(state, collect, argument);
    if (python.set_switch_interval != nullptr) interval::shorten();
    python.restore(state);
    if (python.set_switch_interval != nullptr) interval::restore();
    collect(argument);
    python.save();
}

void forget_interrupting() {
    call::forget();
    if (interface()->set_switch_interval != nullptr) interval::forget();
}

}  // namespace rocpd::python
