#include "forks.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <shared_mutex>

#include "flusher.h"
#include "futex.h"
#include "thread.h"

namespace rocpd::client {

std::atomic<int> g_forks{0};
thread_local bool t_calls = false;
const char kTrial[] = "rocpd: are locks free?";

namespace {

std::atomic<ForkMutex*> g_latest{nullptr};
std::atomic<int> g_callers{0};
thread_local bool t_forks = false;

constexpr std::uint64_t kLongestWait = 20;                  // of a call for a fork [ms]
constexpr auto kLongestDelivery = std::chrono::seconds(1);  // for which a fork waits
// From the moment that forks hold up calls: threads leave the SDK's short locked sections, or come to callbacks.
constexpr timespec kSettling{0, 1000000};

std::shared_timed_mutex& deliveries() {
    static auto& only = *new std::shared_timed_mutex;
    return only;
}

// In the thread that forks; several may at one time.
thread_local bool t_has_deliveries = false;     // no delivery is going on
thread_local ForkMutex* t_locked = nullptr;     // the latest of those that it holds

// ---- the trial ----

using Mark = void (*)(const char*);

rocprofiler_context_id_t g_trial{};
std::atomic<Mark> g_mark{nullptr};

enum Stage : std::uint32_t { kNotStarted, kStarted, kDone };
std::atomic<std::uint32_t> g_stage{kNotStarted};

void ignore(rocprofiler_callback_tracing_record_t, rocprofiler_user_data_t*, void*) {}

void* try_locks(void*) {
    g_stage.store(kStarted);
    futex_wake(g_stage);
    const std::time_t now = 0;
    std::tm parts{};
    localtime_r(&now, &parts);  // the SDK's messages need its lock, even those that nobody wants
    g_mark.load()(kTrial);
    g_stage.store(kDone);
    futex_wake(g_stage);
    return nullptr;
}

// Whether the functions come back that take the locks of every call and of every message. They are called by a thread
// that may be lost.
bool locks_are_free() {
    if (g_mark.load() == nullptr || !good(g_sdk.start_context(g_trial))) return true;
    g_stage.store(kNotStarted);
    const bool runs = start_detached(try_locks, nullptr);
    // Ten seconds for its start, as the machine may be busy, and one from there.
    int slices[] = {200, 20};
    for (std::uint32_t stage = kNotStarted; runs && stage != kDone && slices[stage] > 0; stage = g_stage.load()) {
        --slices[stage];
        futex_wait(g_stage, stage, 50);
    }
    g_sdk.stop_context(g_trial);
    return !runs || g_stage.load() == kDone;
}

// roctx sets itself up in its first call: not in a thread that may be lost.
void find_and_warm() {
    const Mark mark = find_mark();
    if (mark != nullptr) mark(kTrial);
    g_mark.store(mark);
}

void* end_process(void* code) {
    const timespec patience{2, 0};
    nanosleep(&patience, nullptr);
    std::fflush(nullptr);
    _exit(static_cast<int>(reinterpret_cast<std::intptr_t>(code)));
}

}  // namespace

ForkMutex::ForkMutex() : earlier_(g_latest.load()) {
    while (!g_latest.compare_exchange_weak(earlier_, this)) {
    }
}

void lock_all() {
    t_locked = g_latest.load();
    for (ForkMutex* mutex = t_locked; mutex != nullptr; mutex = mutex->earlier_) mutex->lock();
}

void unlock_all() {
    for (ForkMutex* mutex = t_locked; mutex != nullptr; mutex = mutex->earlier_) mutex->unlock();
}

Delivery::Delivery() { deliveries().lock_shared(); }
Delivery::~Delivery() { deliveries().unlock_shared(); }

void count_caller() {
    t_calls = true;
    g_callers.fetch_add(1);
}

void wait_for_forks() {
    if (t_forks) return;  // in another library's handler of the fork
    const timespec slice{0, 100000};
    for (std::uint64_t waited = 0; waited < kLongestWait * 10 && g_forks.load() > 0; ++waited)
        nanosleep(&slice, nullptr);
}

void prepare_trial() {
    deliveries();
    if (!good(g_sdk.create_context(&g_trial)) ||
        !good(g_sdk.configure_callback_tracing_service(g_trial, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, nullptr,
                                                       0, ignore, nullptr)))
        g_trial.handle = 0;
}

void before_fork() {
    t_forks = true;
    g_forks.fetch_add(1);
    if (g_trial.handle != 0 && g_mark.load() == nullptr) find_and_warm();
    if (g_callers.load() > (t_calls ? 1 : 0)) nanosleep(&kSettling, nullptr);
    flush_pending();  // deliveries that were under way come to their end
    t_has_deliveries = deliveries().try_lock_for(kLongestDelivery);
    lock_all();
}

void after_fork_in_parent() {
    unlock_all();
    if (t_has_deliveries) deliveries().unlock();
    g_forks.fetch_sub(1);
    t_forks = false;
}

bool after_fork_in_child() {
    unlock_all();
    new (&deliveries()) std::shared_timed_mutex;  // threads of the parent wait at the old one
    g_forks.store(0);
    t_forks = false;
    const bool is_whole = t_has_deliveries && locks_are_free();
    g_callers.store(t_calls ? 1 : 0);
    return is_whole;
}

void limit_exit() {
    on_exit(
        [](int code, void*) { start_detached(end_process, reinterpret_cast<void*>(static_cast<std::intptr_t>(code))); },
        nullptr);
}

}  // namespace rocpd::client
