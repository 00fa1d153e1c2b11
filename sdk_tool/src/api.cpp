// The C functions of rocpd/recorder.h that switch the recorder on and off, and those of ranges and marks.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "clock.h"
#include "config.h"
#include "hooks.h"
#include "lifecycle.h"
#include "recording.h"
#include "rocpd/recorder.h"
#include "sampler.h"

using namespace rocpd;

namespace {

std::atomic<std::uint64_t> g_next_range{1};
thread_local std::uint64_t t_correlation = 0;

// Records the start of a range, or a mark, as a tool knows it. Returns 0, or -1 when it was lost.
int put_as(Kind kind, const rocpd_range_t& range, std::uint64_t id) {
    Turn turn;
    if (!turn || (range.stack_id == 0 && !turn->ensure_correlation())) return -1;
    const std::uint64_t time = now_ns();
    const std::string_view kept = turn->cut(view(range.text, range.text_size));
    const Begun begun{id,
                      range.stack_id,
                      range.parent_stack_id,
                      range.correlation_id,
                      range.function,
                      range.of_thread != 0 ? 1u : 0u,
                      kept.size()};
    return turn.put(kind, time, sizeof begun + kept.size(), [&](char* at) {
        std::memcpy(at, &begun, sizeof begun);
        append(at + sizeof begun, kept.data(), kept.size());
    });
}

}  // namespace

extern "C" {

int rocpd_start(void) {
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (phase == Phase::kClosed || phase == Phase::kFailed) return -1;
    if (is_recording()) return 0;
    deliver_held();  // records that a tool holds from before the start are refused
    if (!g_state.recording.exchange(true)) start_sampling();
    return 0;
}

int rocpd_stop(void) {
    if (!is_recording()) return 0;
    deliver_held();  // records that a tool holds are from before the stop
    g_state.recording.store(false);
    return 0;
}

int rocpd_listen(void) { return start_service() ? 0 : -1; }

int rocpd_start_as_configured(void) { return config().start ? rocpd_start() : rocpd_listen(); }

int rocpd_needs_signal_stacks(void) { return config().stacks_hz > 0 || config().stacks_wall_hz > 0 ? 1 : 0; }

int rocpd_flush(void) {
    deliver_held();
    return flush() ? 0 : -1;
}

void rocpd_finalize(void) {
    deliver_held();
    finish(10000);
}

void rocpd_status(rocpd_status_t* status) {
    *status = {};
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    status->recording = is_recording() ? 1 : 0;
    status->failed = phase == Phase::kFailed ? 1 : 0;
    status->closed = phase == Phase::kClosed ? 1 : 0;
    std::string file;
    writer_status(file, status->written, status->lost);
    std::memcpy(status->file, file.c_str(), std::min(file.size(), sizeof status->file - 1));
}

uint64_t rocpd_now(void) { return now_ns(); }

int rocpd_range_push(const char* text, size_t size) {
    ThreadBuffer* thread = ThreadBuffer::mine();
    return thread != nullptr && thread->push(view(text, size)) ? 0 : -1;
}

int rocpd_range_pop(void) {
    ThreadBuffer* thread = ThreadBuffer::existing();
    return thread != nullptr && thread->pop() ? 0 : -1;
}

int rocpd_mark(const char* text, size_t size) {
    if (!is_recording()) return -1;
    Turn turn;
    if (!turn || !turn->ensure_correlation()) return -1;
    const std::uint64_t time = now_ns();
    const std::string_view kept = turn->cut(view(text, size));
    return turn.put(kMark, time, kept.size(), [&](char* at) { append(at, kept.data(), kept.size()); });
}

uint64_t rocpd_range_begin(const char* text, size_t size) {
    rocpd_range_t range{};
    range.text = text;
    range.text_size = size;
    return rocpd_range_open(&range);
}

uint64_t rocpd_range_open(const rocpd_range_t* range) {
    if (!is_recording()) return 0;
    const std::uint64_t id = g_next_range.fetch_add(1, std::memory_order_relaxed);
    return put_as(kBegin, *range, id) == 0 ? id : 0;
}

int rocpd_mark_as(const rocpd_range_t* mark) { return is_recording() ? put_as(kMarkAs, *mark, 0) : -1; }

int rocpd_range_end(uint64_t id) {
    if (id == 0 || id >= g_next_range.load(std::memory_order_relaxed)) return -1;  // never started
    // Taken while recording is off too: the range started while it was on.
    Turn turn;
    return turn ? turn.put(kEnd, now_ns(), id) : -1;
}

int rocpd_correlate(uint64_t id) {
    t_correlation = id;
    Turn turn;
    if (!turn) return -1;
    turn->correlate(id);
    return 0;
}

uint64_t rocpd_correlation(void) { return t_correlation; }

void rocpd_name_thread(const char* name, size_t size) {
    // Taken while recording is off too: threads are named once, when they start.
    Turn turn;
    if (!turn) return;
    const std::string_view kept = turn->cut(view(name, size));
    turn.put(kThread, 0, kept.size(), [&](char* at) { append(at, kept.data(), kept.size()); });
}

}  // extern "C"
