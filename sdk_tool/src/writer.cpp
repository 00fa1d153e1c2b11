#include "writer.h"

#include <sched.h>

#include <algorithm>

#include "clock.h"
#include "config.h"
#include "live_state.h"
#include "say.h"

namespace rocpd {
namespace {

constexpr std::size_t kBatch = 1024;            // entries between looks at the gate
constexpr std::uint64_t kLargestCommit = 65536; // events: bounds the page cache and the time that readers wait

std::uint64_t next_tick(std::uint64_t now) {
    // Half the interval: what is lost is at most one tick plus the time of a commit.
    return now + std::max<std::uint64_t>(config().flush_ms, 2) * 1000000 / 2;
}

}  // namespace

template <typename Action>
void Writer::gated(Action action) {
    while (forks_waiting_.load(std::memory_order_acquire) > 0) sched_yield();
    const std::lock_guard<std::mutex> lock(gate_);
    action();
    g_state.progress.fetch_add(1, std::memory_order_relaxed);
}

// Repeats `action` until it returns true: another process has locked the file. Meanwhile recording threads fill their
// buffers, then wait or drop events as configured, and fork() gets the gate. This is no progress, so finish() does not
// wait for it beyond its limit.
template <typename Action>
void Writer::persist(Action action) {
    bool done = false;
    for (;;) {
        while (forks_waiting_.load(std::memory_order_acquire) > 0) sched_yield();
        {
            const std::lock_guard<std::mutex> lock(gate_);
            done = action();
        }
        if (done) break;
        const timespec pause{0, 5000000};
        nanosleep(&pause, nullptr);
    }
    g_state.progress.fetch_add(1, std::memory_order_relaxed);
}

void Writer::run() {
    try {
        work();
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

void Writer::work() {
    std::uint64_t due = next_tick(clock_ns(CLOCK_MONOTONIC));
    for (;;) {
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (now < due && !g_state.finish.load(std::memory_order_acquire))
            futex_wait(g_state.wake, 0, (due - now) / 1000000 + 1);
        // An exchange, not a store: a thread that found 1 here, and so did not wake us, has published before.
        g_state.wake.exchange(0, std::memory_order_acq_rel);
        const bool last = g_state.finish.load(std::memory_order_acquire);
        const std::uint32_t asked = g_state.asked.load(std::memory_order_acquire);
        const bool is_due = clock_ns(CLOCK_MONOTONIC) >= due;
        const bool wanted = asked != g_state.done.load(std::memory_order_relaxed);
        step();
        if (rows_ != nullptr) live::name(rows_->path(), rows_->guid(), identity_.host, identity_.rank);
        live::beat();
        if (is_due) due = next_tick(clock_ns(CLOCK_MONOTONIC));
        if (wanted) {
            g_state.done.store(asked, std::memory_order_release);
            futex_wake(g_state.done);
        }
        if (last) return finish();
    }
}

// Empties the rings and commits. No transaction stays open while the writer sleeps: readers can read, and a program
// that closes our descriptor does no harm.
void Writer::step() {
    drain();
    if (rows_ != nullptr) commit();
}

// Writes what is in the rings, with a commit whenever there is enough for one.
void Writer::drain() {
    gated([this] { threads_ = ThreadBuffer::all(); });
    for (ThreadBuffer* thread : threads_) {
        const bool ended = thread->ended.load(std::memory_order_acquire);
        drain_thread(*thread);
        if (ended) remove(thread);
    }
    if (rows_ != nullptr) gated([this] { rows_->drained(ThreadBuffer::all()); });  // without those that are gone
}

void Writer::drain_thread(ThreadBuffer& thread) {
    // A thread that fills its ring as fast as it is emptied must not keep the others waiting. After this many bytes all
    // that was there at the start is written: a ring and the smaller ones before it hold less.
    const std::size_t enough = 2 * config().buffer_limit;
    for (std::size_t bytes = 0, some = 1; some > 0 && bytes < enough; bytes += some) {
        some = drain_some(thread, kBatch);
        if (rows_ != nullptr && rows_->events() - committed_ >= kLargestCommit) commit();
    }
}

void Writer::remove(ThreadBuffer* thread) {
    if (rows_ != nullptr) begin();
    gated([&] {
        if (rows_ != nullptr) rows_->end_thread(*thread, now_ns());
        names_.erase(thread->tid);
        of_ended_.lost += thread->lost.load();
        of_ended_.cuts += thread->cuts.load();
        of_ended_.waits += thread->waits.load();
        ThreadBuffer::remove(thread);
    });
}

// Writes up to `entries` entries and returns their size in bytes, 0 when the ring is empty.
std::size_t Writer::drain_some(ThreadBuffer& thread, std::size_t entries) {
    std::size_t bytes = 0;
    if (thread.reading->front() == nullptr && thread.reading->next.load(std::memory_order_acquire) == nullptr) return 0;
    if (rows_ != nullptr) begin();
    gated([&] {
        for (std::size_t i = 0; i < entries; ++i) {
            const Head* entry = next_entry(thread);
            if (entry == nullptr) return;
            bytes += entry->size;
            take(thread, *entry);
            thread.reading->pop(entry->size);
        }
    });
    return bytes;
}

void Writer::take(ThreadBuffer& thread, const Head& entry) {
    if (rows_ == nullptr && entry.kind == kThread) {
        names_[thread.tid] = text_of(entry);  // a name alone is no reason to make a file
        return;
    }
    if (rows_ == nullptr) open();
    rows_->take(thread, entry);
}

// Returns the oldest entry of a thread, nullptr when there is none.
const Head* Writer::next_entry(ThreadBuffer& thread) {
    for (;;) {
        if (const Head* entry = thread.reading->front()) return entry;
        Ring* larger = thread.reading->next.load(std::memory_order_acquire);
        if (larger == nullptr) return nullptr;
        // `next` was set after the last entry of this ring was published: look once more before leaving it.
        if (const Head* entry = thread.reading->front()) return entry;
        Ring::destroy(thread.reading);
        thread.reading = larger;
    }
}

void Writer::open() {
    rows_ = std::make_unique<Rows>(identity_);
    for (ThreadBuffer* thread : threads_)
        if (const auto name = names_.find(thread->tid); name != names_.end()) rows_->name_thread(*thread, name->second);
    names_.clear();
}

void Writer::begin() {
    persist([this] { return rows_->begin(); });
}

void Writer::commit() {
    persist([this] { return rows_->commit(losses()); });
    committed_ = rows_->events();
    gated([this] { publish_status(); });
}

Losses Writer::losses() const {
    Losses sum = of_ended_;
    sum.lost += g_state.unbuffered.load(std::memory_order_relaxed);
    for (const ThreadBuffer* thread : ThreadBuffer::all()) {
        sum.lost += thread->lost.load(std::memory_order_relaxed);
        sum.cuts += thread->cuts.load(std::memory_order_relaxed);
        sum.waits += thread->waits.load(std::memory_order_relaxed);
    }
    return sum;
}

void Writer::finish() {
    if (rows_ != nullptr) {
        begin();
        gated([this] { rows_->finish(ThreadBuffer::all()); });
        commit();
        gated([this] { rows_->close(); });
        if (const std::uint64_t lost = status_lost_.load(); lost > 0)
            say(rows_->path() + ": " + std::to_string(lost) +
                " events were lost: full buffers, no memory, or ranges too deep");
    }
    live::end();
    end(Phase::kClosed);
}

void Writer::fail(const std::string& why) {
    g_state.recording.store(false);
    live::failed();
    const std::string file = rows_ != nullptr ? rows_->path() : config().folder;
    say(file + ": " + why + "; nothing more is recorded" +
        (rows_ != nullptr ? ", " + std::to_string(status_written_.load()) + " events are in the file" : ""));
    // After the message: a process that waits for its end goes on from here, and takes this thread with it.
    g_state.phase.store(Phase::kFailed, std::memory_order_release);
    end(Phase::kFailed);
}

// Wakes all that wait. The last thing that a writer does.
void Writer::end(Phase phase) {
    gated([this] { rows_.reset(); });
    g_state.phase.store(phase, std::memory_order_release);
    g_state.done.store(g_state.asked.load());
    futex_wake(g_state.done);
    g_state.finished.store(1, std::memory_order_release);
    futex_wake(g_state.finished);
}

void Writer::publish_status() {
    status_written_.store(rows_->events(), std::memory_order_relaxed);
    status_lost_.store(losses().lost, std::memory_order_relaxed);
    if (!status_file_.empty()) return;
    const std::lock_guard<std::mutex> lock(status_mutex_);
    status_file_ = rows_->path();
}

void Writer::status(std::string& file, std::uint64_t& written, std::uint64_t& lost) {
    const std::lock_guard<std::mutex> lock(status_mutex_);
    file = status_file_;
    written = status_written_.load(std::memory_order_relaxed);
    lost = status_lost_.load(std::memory_order_relaxed);
}

}  // namespace rocpd
