#include "lifecycle.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "config.h"
#include "control.h"
#include "environment.h"
#include "hooks.h"
#include "live_state.h"
#include "registrations.h"
#include "sampler.h"
#include "say.h"
#include "signals.h"
#include "state.h"
#include "texts.h"
#include "thread.h"
#include "thread_buffer.h"
#include "writer.h"

namespace rocpd {
namespace {

struct Service {
    std::mutex mutex;
    Writer* writer = nullptr;  // never deleted: threads may still use it while the process ends
    // Writers of the parents. Never deleted: that would roll back the parent's transaction in the parent's file.
    std::vector<Writer*> inherited;
};

Service& service() {
    static Service& only = *new Service;
    return only;
}

void* write_thread(void* writer) {
    pthread_setname_np(pthread_self(), "rocpd-writer");
    static_cast<Writer*>(writer)->run();
    return nullptr;
}

Writer* current_writer() {
    const std::lock_guard<std::mutex> lock(service().mutex);
    return service().writer;
}

// The writer whose gate is held; read and written only while the other locks are held.
Writer* g_held = nullptr;

void unlock_all() {
    Writer* writer = g_held;
    config_mutex().unlock();
    service().mutex.unlock();
    registrations().mutex().unlock();
    texts().mutex().unlock();
    ThreadBuffer::list_mutex().unlock();
    if (writer != nullptr) writer->gate().unlock();
}

// In this order everywhere: gate, threads, texts, registrations, service, settings.
void lock_all(Writer* writer) {
    if (writer != nullptr) {
        writer->forks_waiting().fetch_add(1);
        writer->gate().lock();
        writer->forks_waiting().fetch_sub(1);
    }
    ThreadBuffer::list_mutex().lock();
    texts().mutex().lock();
    registrations().mutex().lock();
    service().mutex.lock();
    config_mutex().lock();
    g_held = writer;
}

// Signals that the thread had blocked before fork().
thread_local sigset_t t_blocked;

// Takes no signal until the locks are given back: the handler of one that ends the process waits for the writer, which
// waits for these locks.
void before_fork() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &t_blocked);
    for (;;) {
        lock_all(current_writer());
        if (service().writer == g_held) return;
        unlock_all();  // another thread has just started recording, and its writer may be working
    }
}

void after_fork_in_parent() {
    unlock_all();
    pthread_sigmask(SIG_SETMASK, &t_blocked, nullptr);
}

// The child starts without writer and buffers, with the texts and registrations of its parent, and gets its own file.
void after_fork_in_child() {
    ThreadBuffer::forget_all();
    if (service().writer != nullptr) service().inherited.push_back(service().writer);
    service().writer = nullptr;
    unlock_all();
    g_state.pid.store(getpid());
    if (g_state.phase.load() == Phase::kRunning) g_state.phase.store(Phase::kIdle);
    for (std::atomic<std::uint32_t>* word : {&g_state.wake, &g_state.asked, &g_state.done, &g_state.finished})
        word->store(0);
    g_state.unbuffered.store(0);
    g_state.finish.store(false);
    remember_environment();
    live::forget();
    forget_control();
    forget_sampling();
    pthread_sigmask(SIG_SETMASK, &t_blocked, nullptr);
    start_sampling();
}

__attribute__((constructor)) void at_load() {
    // Made now: a signal handler must not allocate, and a forked child must not find them half made.
    service();
    texts();
    registrations();
    config_mutex();
    ThreadBuffer::prepare();
    remember_environment();
    g_state.pid.store(getpid());
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    at_quick_exit([] {
        deliver_held();
        finish(10000);
    });
}

__attribute__((destructor)) void at_unload() { finish(10000); }

thread_local bool t_is_service = false;

struct Start {
    void* (*body)(void*);
    void* argument;
};

void* serve(void* start) {
    const Start chosen = *static_cast<Start*>(start);
    delete static_cast<Start*>(start);
    t_is_service = true;
    return chosen.body(chosen.argument);
}

}  // namespace

bool is_service_thread() { return t_is_service; }

bool start_service_thread(void* (*body)(void*), void* argument) {
    auto* start = new Start{body, argument};
    if (start_detached(serve, start)) return true;
    delete start;
    return false;
}

Texts& texts() {
    static Texts& only = *new Texts;
    return only;
}

Registrations& registrations() {
    static Registrations& only = *new Registrations;
    return only;
}

bool start_service() {
    const std::lock_guard<std::mutex> lock(service().mutex);
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (phase != Phase::kIdle) return phase == Phase::kRunning;
    if (!is_owner()) return false;  // a child of vfork()
    auto writer = std::make_unique<Writer>(identify_process(Kept(config().keep_env)));
    Phase idle = Phase::kIdle;
    // The process may have been asked to end meanwhile.
    if (!g_state.phase.compare_exchange_strong(idle, Phase::kRunning)) return false;
    service().writer = writer.release();
    if (!start_service_thread(write_thread, service().writer)) {
        g_state.phase.store(Phase::kFailed, std::memory_order_release);
        // No message from a service thread: a process that ends, or runs another program, can start no further thread.
        if (!is_service_thread()) say("no thread can be started; nothing is recorded");
        return false;
    }
    catch_signals();
    if (config().control) start_control();
    return true;
}

bool flush() {
    if (!is_owner()) return false;
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (phase != Phase::kRunning) return phase != Phase::kFailed;
    const std::uint32_t ticket = g_state.asked.fetch_add(1) + 1;
    wake_writer();
    for (;;) {
        const std::uint32_t done = g_state.done.load(std::memory_order_acquire);
        if (static_cast<std::int32_t>(done - ticket) >= 0) break;
        if (g_state.finished.load(std::memory_order_acquire) != 0) break;
        futex_wait(g_state.done, done, 50);
    }
    return g_state.phase.load(std::memory_order_acquire) != Phase::kFailed;
}

void finish(unsigned ms) {
    if (!is_owner()) return;
    g_state.recording.store(false);
    Phase idle = Phase::kIdle;
    if (g_state.phase.compare_exchange_strong(idle, Phase::kClosed)) return live::end();
    g_state.finish.store(true, std::memory_order_release);
    g_state.wake.store(1);
    futex_wake(g_state.wake);
    std::uint32_t seen = g_state.progress.load();
    for (unsigned waited = 0; g_state.finished.load(std::memory_order_acquire) == 0 && waited < ms; waited += 20) {
        if (g_state.phase.load() == Phase::kFailed || g_state.phase.load() == Phase::kClosed) break;
        futex_wait(g_state.finished, 0, 20);
        const std::uint32_t now = g_state.progress.load();
        if (now != seen) waited = 0;
        seen = now;
    }
    if (g_state.phase.load() == Phase::kRunning) {
        static constexpr char text[] = "rocpd: the file could not be closed in time; the last events are missing\n";
        if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
    }
    remove_control();
}

void writer_status(std::string& file, std::uint64_t& written, std::uint64_t& lost) {
    const std::lock_guard<std::mutex> lock(service().mutex);
    if (service().writer != nullptr) service().writer->status(file, written, lost);
}

}  // namespace rocpd
