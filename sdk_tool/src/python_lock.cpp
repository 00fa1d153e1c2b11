#include "python_lock.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "futex.h"
#include "lifecycle.h"

namespace rocpd::python {
namespace {

// Until Python 3.11, a thread that waits for the lock asks for it after the switch interval. This is shortened while the
// sampling thread starts to wait. Not for longer: meanwhile each waiting thread asks again and again.
namespace interval {

constexpr unsigned long kShort = 11;      // less is hardly a sleep, and a busy machine would not get on meanwhile [us]
constexpr useconds_t kMoment = 20;        // enough for the first time that the thread asks [us]
constexpr std::uint64_t kHour = 3600000;  // [ms]

std::atomic<unsigned long> g_usual{kShort};
std::atomic<std::uint32_t> g_is_short{0};
std::atomic<bool> g_is_watched{false};

void restore() {
    if (interface()->switch_interval() == kShort) interface()->set_switch_interval(g_usual.load());
}

void sleep_exactly() { prctl(PR_SET_TIMERSLACK, 1); }  // this thread, which sleeps 50 us more otherwise

// The sampling thread may wait for long, where the running thread is in a call of C, or for ever.
void* watch(void*) {
    pthread_setname_np(pthread_self(), "rocpd-interval");
    sleep_exactly();
    for (;;) {
        futex_wait(g_is_short, 0, kHour);
        if (g_is_short.exchange(0) == 0) continue;
        usleep(kMoment);
        restore();
    }
}

void shorten() {
    if (!g_is_watched.load()) {
        if (!start_service_thread(watch, nullptr)) return;
        g_is_watched.store(true);
        sleep_exactly();
    }
    const unsigned long now = interface()->switch_interval();
    if (now != kShort) g_usual.store(now);
    interface()->set_switch_interval(kShort);
    g_is_short.store(1);
    futex_wake(g_is_short);
}

void forget() {
    g_is_watched.store(false);
    g_is_short.store(0);
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
