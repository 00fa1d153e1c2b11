#include "ranges.h"

#include "json.h"
#include "lifecycle.h"
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
      core_(texts().number("MARKER_CORE_API")),
      thread_range_(texts().number("roctxThreadRangeA")),
      process_range_(texts().number("roctxProcessRangeA")),
      mark_(texts().number("roctxMarkA")) {}

Timeline& Ranges::timeline(ThreadBuffer& thread) {
    if (!thread.timeline.has_row) {
        thread.timeline.has_row = true;
        referenced_.thread(thread.tid, static_cast<std::int64_t>(thread.began));
    }
    return thread.timeline;
}

void Ranges::write(const Open& range, std::uint64_t end, std::uint32_t category, bool unfinished) {
    json_ = "{\"message\":";
    append_json(json_, range.text);
    json_ += unfinished ? ",\"unfinished\":true}" : "}";
    const std::int64_t event = tables_.event({category, range.stack_id, range.parent, range.correlation, json_});
    tables_.region(range.tid, range.start, end, range.function, event);
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
    if (line.depth > 0) write(line.ranges[--line.depth], entry.time, ranges_, false);
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

void Ranges::mark(ThreadBuffer& thread, const Head& entry) {
    Open range = opened(thread, timeline(thread), entry.time);
    range.function = mark_;
    range.text = text_of(entry);
    write(range, entry.time, core_, false);
}

void Ranges::begin(ThreadBuffer& thread, const Head& entry) {
    const auto begun = body<Begun>(entry);
    Open range = opened(thread, timeline(thread), entry.time);
    if (begun.stack_id != 0) {
        range.stack_id = begun.stack_id;
        range.parent = begun.parent;
        range.correlation = begun.correlation;
    }
    range.function = begun.function != 0 ? begun.function : process_range_;
    range.of_thread = begun.of_thread != 0;
    range.text.assign(after_head(entry) + sizeof begun, begun.text_size);
    const auto early = ended_.find(begun.id);
    if (early == ended_.end()) {
        begun_.emplace(begun.id, std::move(range));
        return;
    }
    write(range, early->second.time, ranges_, false);
    ended_.erase(early);
}

void Ranges::end(const Head& entry) {
    const auto number = body<std::uint64_t>(entry);
    const auto begun = begun_.find(number);
    if (begun == begun_.end()) {
        ended_.emplace(number, Stray{entry.time, round_});  // the start may still lie in another thread's ring
        return;
    }
    write(begun->second, entry.time, ranges_, false);
    begun_.erase(begun);
}

void Ranges::forget_strays() {
    for (auto stray = ended_.begin(); stray != ended_.end();)
        stray = stray->second.round != round_ ? ended_.erase(stray) : std::next(stray);
    ++round_;
}

void Ranges::name_thread(ThreadBuffer& thread, std::string_view name) {
    thread.timeline.has_row = true;
    referenced_.name_thread(thread.tid, name, thread.began);
}

void Ranges::end_thread(ThreadBuffer& thread, std::uint64_t time) {
    Timeline& line = thread.timeline;
    while (line.depth > 0) write(line.ranges[--line.depth], time, ranges_, true);
    for (auto begun = begun_.begin(); begun != begun_.end();) {
        if (!begun->second.of_thread || begun->second.tid != thread.tid) {
            ++begun;
            continue;
        }
        write(begun->second, time, ranges_, true);
        begun = begun_.erase(begun);
    }
    referenced_.end_thread(thread.tid, time);
}

void Ranges::end_all(std::uint64_t time) {
    for (const auto& begun : begun_) write(begun.second, time, ranges_, true);
    begun_.clear();
    ended_.clear();
}

}  // namespace rocpd
