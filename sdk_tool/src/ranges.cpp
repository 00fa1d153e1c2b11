#include "ranges.h"

#include "json.h"
#include "lifecycle.h"
#include "live_state.h"
#include "texts.h"

namespace rocpd {

std::atomic<std::uint64_t> g_next_stack{1};

namespace {

std::uint64_t innermost(const Timeline& line) { return line.depth > 0 ? line.ranges[line.depth - 1].stack_id : 0; }

std::uint64_t next_stack() { return g_next_stack.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

Ranges::Ranges(Tables& tables, ReferencedRows& referenced)
    : tables_(tables),
      referenced_(referenced),
      ranges_(texts().number("MARKER_CORE_RANGE_API")),
      thread_range_(texts().number("roctxThreadRangeA")),
      process_range_(texts().number("roctxProcessRangeA")) {}

Timeline& Ranges::timeline(ThreadBuffer& thread) {
    if (!thread.timeline.has_row) {
        thread.timeline.has_row = true;
        referenced_.thread(thread.tid, static_cast<std::int64_t>(thread.began));
    }
    return thread.timeline;
}

std::int64_t Ranges::event_of(const Open& range, bool unfinished) {
    json_ = "{\"message\":";
    append_json(json_, range.text);
    json_ += unfinished ? ",\"unfinished\":true}" : "}";
    return tables_.event({ranges_, range.stack_id, range.parent, range.correlation, json_});
}

void Ranges::write(const Open& range, std::uint64_t end, bool unfinished) {
    tables_.region(range.tid, range.start, end, range.function, event_of(range, unfinished));
}

// As rocprofv3 writes marks: samples on a track of the thread that is named as their category.
void Ranges::write_mark(const Open& mark) {
    const std::int64_t event = event_of(mark, false);
    tables_.sample(referenced_.track_of_thread(mark.tid, ranges_), mark.start, event);
}

void Ranges::push(ThreadBuffer& thread, const Head& entry) {
    Timeline& line = timeline(thread);
    if (line.ranges.size() == line.depth) line.ranges.emplace_back();
    Open& range = line.ranges[line.depth];
    range.start = entry.time;
    range.stack_id = next_stack();
    range.parent = innermost(line);
    range.correlation = line.correlation;
    range.tid = thread.tid;
    range.function = thread_range_;
    range.text = text_of(entry);
    ++line.depth;
}

void Ranges::pop(ThreadBuffer& thread, const Head& entry) {
    Timeline& line = timeline(thread);
    if (line.depth > 0) write(line.ranges[--line.depth], entry.time, false);
}

Open Ranges::opened(ThreadBuffer& thread, const Timeline& line, std::uint64_t time) {
    Open range;
    range.start = time;
    range.stack_id = next_stack();
    range.parent = innermost(line);
    range.correlation = line.correlation;
    range.tid = thread.tid;
    return range;
}

Open Ranges::opened_as(ThreadBuffer& thread, const Head& entry, const Begun& begun) {
    Open range = opened(thread, timeline(thread), entry.time);
    if (begun.stack_id != 0) {
        range.stack_id = begun.stack_id;
        range.parent = begun.parent;
        range.correlation = begun.correlation;
    }
    range.text.assign(after_head(entry) + sizeof begun, begun.text_size);
    return range;
}

void Ranges::mark(ThreadBuffer& thread, const Head& entry) {
    Open range = opened(thread, timeline(thread), entry.time);
    range.text = text_of(entry);
    write_mark(range);
}

void Ranges::mark_as(ThreadBuffer& thread, const Head& entry) {
    write_mark(opened_as(thread, entry, body<Begun>(entry)));
}

void Ranges::begin(ThreadBuffer& thread, const Head& entry) {
    const auto begun = body<Begun>(entry);
    Open range = opened_as(thread, entry, begun);
    range.function = begun.function != 0 ? begun.function : process_range_;
    range.of_thread = begun.of_thread != 0;
    const auto early = ended_.find(begun.id);
    if (early == ended_.end()) {
        begun_.emplace(begun.id, std::move(range));
        return;
    }
    write(range, early->second.time, false);
    ended_.erase(early);
}

void Ranges::end(const Head& entry) {
    const auto number = body<std::uint64_t>(entry);
    const auto begun = begun_.find(number);
    if (begun == begun_.end()) {
        ended_.emplace(number, Stray{entry.time, round_});  // the start may still lie in another thread's ring
        return;
    }
    write(begun->second, entry.time, false);
    begun_.erase(begun);
}

void Ranges::forget_strays() {
    for (auto stray = ended_.begin(); stray != ended_.end();)
        stray = stray->second.round != round_ ? ended_.erase(stray) : std::next(stray);
    ++round_;
}

void Ranges::show_open(const std::vector<ThreadBuffer*>& threads) const {
    std::unordered_map<std::uint32_t, const Open*> innermost;
    const auto take = [&innermost](const Open& range) {
        const Open*& known = innermost[range.tid];
        if (known == nullptr || known->start <= range.start) known = &range;
    };
    for (const auto& [number, range] : begun_)
        if (range.of_thread) take(range);
    for (const ThreadBuffer* thread : threads)
        if (thread->timeline.depth > 0) take(thread->timeline.ranges[thread->timeline.depth - 1]);
    live::show_ranges([&innermost](std::uint32_t tid) -> live::OpenRange {
        const auto found = innermost.find(tid);
        if (found == innermost.end()) return {0, {}};
        return {found->second->start, found->second->text};
    });
}

void Ranges::name_thread(ThreadBuffer& thread, std::string_view name) {
    thread.timeline.has_row = true;
    referenced_.name_thread(thread.tid, name, thread.began);
}

void Ranges::end_thread(ThreadBuffer& thread, std::uint64_t time) {
    Timeline& line = thread.timeline;
    while (line.depth > 0) write(line.ranges[--line.depth], time, true);
    for (auto begun = begun_.begin(); begun != begun_.end();) {
        if (!begun->second.of_thread || begun->second.tid != thread.tid) {
            ++begun;
            continue;
        }
        write(begun->second, time, true);
        begun = begun_.erase(begun);
    }
    referenced_.end_thread(thread.tid, time);
}

void Ranges::end_all(std::uint64_t time) {
    for (const auto& begun : begun_) write(begun.second, time, true);
    begun_.clear();
    ended_.clear();
}

}  // namespace rocpd
