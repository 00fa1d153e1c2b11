// Owns the C functions of rocpd/recorder.h: each checks, copies its event into the thread's ring and returns.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "clock.h"
#include "entry.h"
#include "facts.h"
#include "json.h"
#include "lifecycle.h"
#include "rocpd/recorder.h"
#include "rows.h"
#include "sampler.h"
#include "state.h"
#include "texts.h"
#include "thread_buffer.h"

using namespace rocpd;

namespace {

std::atomic<std::uint64_t> g_next_range{1};
std::atomic<std::int64_t> g_next_track{1};
std::atomic<void (*)()> g_before_flush{nullptr};
std::atomic<pid_t> g_before_flush_of{0};

void hand_over() {
    // A forked child has no tool to ask, and events that a tool holds back are the parent's.
    if (g_before_flush_of.load() != getpid()) return;
    if (void (*ask)() = g_before_flush.load()) ask();
}

bool is_recording() { return g_state.recording.load(std::memory_order_relaxed); }

std::string_view view(const char* text, std::size_t size) { return text != nullptr ? std::string_view{text, size} : ""; }

Cell cell(const char* text) { return text != nullptr ? Cell(readable(text)) : Cell(nullptr); }
Cell cell(std::uint64_t number) { return static_cast<std::int64_t>(number); }
Cell json_cell(const char* text) { return std::string(text != nullptr ? text : "{}"); }
Cell id_or_nothing(std::int64_t id) { return id < 0 ? Cell(nullptr) : Cell(id); }

char* append(char* at, const void* data, std::size_t size) {
    if (size > 0) std::memcpy(at, data, size);  // nothing may come as a null pointer
    return at + padded(size);
}

// Records Head and text.
int text_entry(Kind kind, std::string_view text) {
    if (!is_recording()) return -1;
    ThreadBuffer* thread = ThreadBuffer::mine();
    if (thread == nullptr || !thread->enter()) return -1;
    const std::uint64_t time = now_ns();
    text = thread->cut(text);
    const std::size_t size = padded(sizeof(Head) + text.size());
    char* room = thread->reserve(size);
    if (room != nullptr) {
        const auto padding = static_cast<std::uint16_t>(size - sizeof(Head) - text.size());
        new (room) Head{static_cast<std::uint32_t>(size), kind, padding, time};
        append(room + sizeof(Head), text.data(), text.size());
        thread->publish(size);
    }
    thread->leave();
    return room != nullptr ? 0 : -1;
}

// Records Head, a plain struct, and the event's message.
template <typename T>
int event_entry(Kind kind, const T& what, const rocpd_argument_t* arguments = nullptr, std::size_t count = 0) {
    if (!is_recording()) return -1;
    ThreadBuffer* thread = ThreadBuffer::mine();
    if (thread == nullptr || !thread->enter()) return -1;
    T event = what;
    const std::string_view message = thread->cut(view(event.event.message, event.event.message_size));
    event.event.message_size = message.size();
    std::size_t size = padded(sizeof(Head) + sizeof event + padded(message.size()));
    for (std::size_t i = 0; i < count; ++i) size += sizeof(Argument) + padded(arguments[i].value_size);
    char* room = thread->reserve(size);
    if (room != nullptr) {
        new (room) Head{static_cast<std::uint32_t>(size), kind, 0, 0};
        std::memcpy(room + sizeof(Head), &event, sizeof event);
        char* at = append(room + sizeof(Head) + sizeof event, message.data(), message.size());
        for (std::size_t i = 0; i < count; ++i) {
            const rocpd_argument_t& a = arguments[i];
            const Argument head{a.type, a.name, static_cast<std::uint32_t>(a.value_size), 0};
            at = append(at, &head, sizeof head);
            at = append(at, a.value, a.value_size);
        }
        thread->publish(size);
    }
    thread->leave();
    return room != nullptr ? 0 : -1;
}

template <typename T>
int plain_entry(Kind kind, std::uint64_t time, const T& body, std::string_view text = {}) {
    ThreadBuffer* thread = ThreadBuffer::mine();
    if (thread == nullptr || !thread->enter()) return -1;
    const std::size_t size = padded(sizeof(Head) + sizeof body + text.size());
    char* room = thread->reserve(size);
    if (room != nullptr) {
        new (room) Head{static_cast<std::uint32_t>(size), kind, 0, time};
        std::memcpy(room + sizeof(Head), &body, sizeof body);
        append(room + sizeof(Head) + sizeof body, text.data(), text.size());
        thread->publish(size);
    }
    thread->leave();
    return room != nullptr ? 0 : -1;
}

}  // namespace

extern "C" {

int rocpd_start(void) {
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (phase == Phase::kClosed || phase == Phase::kFailed) return -1;
    if (!g_state.recording.exchange(true)) start_sampling();
    return 0;
}

int rocpd_listen(void) { return start_service() ? 0 : -1; }

int rocpd_stop(void) {
    g_state.recording.store(false);
    return 0;
}

int rocpd_flush(void) {
    hand_over();
    return flush() ? 0 : -1;
}

void rocpd_finalize(void) {
    hand_over();
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
    std::memcpy(status->file, file.c_str(), std::min(file.size() + 1, sizeof status->file - 1));
}

uint64_t rocpd_now(void) { return now_ns(); }

int rocpd_range_push(const char* text, size_t size) {
    ThreadBuffer* thread = ThreadBuffer::mine();
    return thread != nullptr && thread->push(view(text, size)) ? 0 : -1;
}

int rocpd_range_pop(void) {
    ThreadBuffer* thread = ThreadBuffer::mine();
    return thread != nullptr && thread->pop() ? 0 : -1;
}

uint64_t rocpd_range_begin(const char* text, size_t size) {
    const std::uint64_t id = g_next_range.fetch_add(1, std::memory_order_relaxed);
    if (!is_recording()) return 0;
    const std::string_view kept = view(text, std::min(size, kLongestText));
    return plain_entry(kBegin, now_ns(), Numbered{id, kept.size()}, kept) == 0 ? id : 0;
}

int rocpd_range_end(uint64_t id) {
    // Taken while recording is off too: the range began while it was on.
    return id == 0 ? -1 : plain_entry(kEnd, now_ns(), Numbered{id, 0});
}

int rocpd_mark(const char* text, size_t size) { return text_entry(kMark, view(text, size)); }

rocpd_text_t rocpd_text(const char* text, size_t size) { return texts().number(readable(view(text, size))); }

void rocpd_name_thread(const char* name, size_t size) { text_entry(kThread, view(name, size)); }

void rocpd_register_agent(const rocpd_agent_t* a) {
    facts().add(kAgent, {a->id, cell(a->type), a->absolute_index, a->logical_index, a->type_index, cell(a->uuid),
                         cell(a->name), cell(a->model_name), cell(a->vendor_name), cell(a->product_name),
                         cell(a->user_name), json_cell(a->extdata)});
}

void rocpd_register_queue(int64_t id, const char* name) { facts().add(kQueue, {id, cell(name)}); }

void rocpd_register_stream(int64_t id, const char* name) { facts().add(kStream, {id, cell(name)}); }

void rocpd_register_code_object(const rocpd_code_object_t* o) {
    facts().add(kCodeObject, {o->id, id_or_nothing(o->agent_id), cell(o->uri), cell(o->load_base), cell(o->load_size),
                              cell(o->load_delta), cell(o->storage_type), json_cell(o->extdata)});
}

void rocpd_register_kernel_symbol(const rocpd_kernel_symbol_t* s) {
    facts().add(kSymbol, {s->id, s->code_object_id, cell(s->kernel_name), cell(s->display_name),
                          cell(s->kernel_object), cell(std::uint64_t{s->kernarg_segment_size}),
                          cell(std::uint64_t{s->kernarg_segment_alignment}),
                          cell(std::uint64_t{s->group_segment_size}), cell(std::uint64_t{s->private_segment_size}),
                          cell(std::uint64_t{s->sgpr_count}), cell(std::uint64_t{s->arch_vgpr_count}),
                          cell(std::uint64_t{s->accum_vgpr_count}), json_cell(s->extdata)});
}

void rocpd_register_counter(const rocpd_counter_t* c) {
    const char* units = c->units != nullptr ? c->units : "";
    facts().add(kPmc, {c->id, id_or_nothing(c->agent_id), cell(c->target_arch), c->id, std::int64_t{0}, cell(c->name),
                       cell(c->name), cell(c->description), cell(c->component), cell(units), cell(c->value_type),
                       cell(c->block), cell(c->expression), std::int64_t{c->is_constant}, std::int64_t{c->is_derived}});
}

int64_t rocpd_register_track(const char* name) {
    const std::int64_t id = g_next_track.fetch_add(1);
    facts().add(kTrack, {id, std::int64_t{texts().number(readable(name))}});
    return id;
}

void rocpd_note(const char* tag, const char* value) { facts().add(kMetadata, {cell(tag), cell(value)}); }

int rocpd_region(const rocpd_region_t* region) {
    return event_entry(kRegion, *region, region->arguments, region->argument_count);
}

int rocpd_dispatch(const rocpd_dispatch_t* dispatch) { return event_entry(kDispatch, *dispatch); }

int rocpd_copy(const rocpd_copy_t* copy) { return event_entry(kCopy, *copy); }

int rocpd_allocation(const rocpd_allocation_t* allocation) { return event_entry(kAllocate, *allocation); }

int rocpd_sample(int64_t track, uint64_t time, int64_t counter, double value) {
    return is_recording() ? plain_entry(kSample, time, Value{track, counter, value}) : -1;
}

int rocpd_counter_value(int64_t dispatch_id, int64_t counter, double value) {
    return is_recording() ? plain_entry(kCounter, 0, Value{dispatch_id, counter, value}) : -1;
}

void rocpd_before_flush(void (*ask)(void)) {
    g_before_flush_of.store(getpid());
    g_before_flush.store(ask);
}

void rocpd_own_stack_ids_from(uint64_t first) { g_next_stack.store(first); }

}  // extern "C"
