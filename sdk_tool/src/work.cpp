#include "work.h"

#include "facts.h"
#include "json.h"
#include "lifecycle.h"
#include "texts.h"

namespace rocpd {
namespace {

// Values come within moments of their dispatch; these bound the memory of runs of days.
constexpr std::size_t kGeneration = std::size_t{1} << 18;  // dispatches
constexpr std::size_t kMostEarly = std::size_t{1} << 19;   // values

}  // namespace

Work::Work(Tables& tables, References& references)
    : tables_(tables), references_(references), sample_(texts().number("PROCESS_SAMPLE")) {}

std::uint32_t Work::thread_of(const rocpd_event_t& e, const ThreadBuffer& thread) {
    if (e.tid == 0 || e.tid == thread.tid) {
        references_.thread(thread.tid, static_cast<std::int64_t>(thread.began));
        return thread.tid;
    }
    references_.thread(e.tid, nullptr);
    return e.tid;
}

std::int64_t Work::event_of(const rocpd_event_t& e, std::string_view message) {
    json_.clear();
    if (message.empty()) message = texts().text(e.message_text);
    if (!message.empty()) {
        json_ = "{\"message\":";
        append_json(json_, message);
        json_ += '}';
    }
    return tables_.event({e.category, e.stack_id, e.parent_stack_id, e.correlation_id, json_});
}

void Work::region(ThreadBuffer& thread, const Head& entry) {
    const auto r = body<rocpd_region_t>(entry);
    const char* at = behind(entry) + sizeof r;
    const std::uint32_t tid = thread_of(r.event, thread);
    const std::int64_t event = event_of(r.event, {at, r.event.message_size});
    tables_.region(tid, r.start, r.end, r.name, event);
    arguments(at + padded(r.event.message_size), r.argument_count, event);
}

void Work::arguments(const char* at, std::size_t count, std::int64_t event) {
    for (std::size_t position = 0; position < count; ++position) {
        Argument argument{};
        std::memcpy(&argument, at, sizeof argument);
        at += sizeof argument;
        const std::string value = readable({at, argument.size});
        at += padded(argument.size);
        tables_.argument(event, position, texts().text(argument.type), texts().text(argument.name), value);
    }
}

void Work::place(std::int64_t agent, std::int64_t queue, std::int64_t stream) {
    if (agent >= 0) references_.agent(agent);
    if (queue >= 0) references_.queue(queue);
    if (stream >= 0) references_.stream(stream);
}

void Work::dispatch(ThreadBuffer& thread, const Head& entry) {
    const auto d = body<rocpd_dispatch_t>(entry);
    const std::uint32_t tid = thread_of(d.event, thread);
    // These columns take no NULL: what is unknown is a row of its own.
    references_.agent(d.agent_id);
    references_.queue(d.queue_id);
    references_.stream(d.stream_id);
    references_.kernel(d.kernel_id);
    const std::int64_t event = event_of(d.event, {behind(entry) + sizeof d, d.event.message_size});
    tables_.dispatch(d, tid, event);
    if (facts().has_counters()) remember(d.dispatch_id, event);
}

void Work::remember(std::int64_t dispatch, std::int64_t event) {
    if (young_.size() >= kGeneration) {
        old_.swap(young_);
        young_.clear();
    }
    young_[dispatch] = event;
    const auto early = early_.find(dispatch);
    if (early == early_.end()) return;
    for (const auto& [counter, number] : early->second) tables_.value(event, counter, number);
    early_values_ -= early->second.size();
    early_.erase(early);
}

std::int64_t Work::event_of_dispatch(std::int64_t dispatch) const {
    if (const auto found = young_.find(dispatch); found != young_.end()) return found->second;
    const auto found = old_.find(dispatch);
    return found != old_.end() ? found->second : 0;
}

void Work::copy(ThreadBuffer& thread, const Head& entry) {
    const auto c = body<rocpd_copy_t>(entry);
    const std::uint32_t tid = thread_of(c.event, thread);
    place(c.dst_agent_id, c.queue_id, c.stream_id);
    if (c.src_agent_id >= 0) references_.agent(c.src_agent_id);
    tables_.copy(c, tid, event_of(c.event, {behind(entry) + sizeof c, c.event.message_size}));
}

void Work::allocation(ThreadBuffer& thread, const Head& entry) {
    const auto a = body<rocpd_allocation_t>(entry);
    const std::uint32_t tid = thread_of(a.event, thread);
    place(a.agent_id, a.queue_id, a.stream_id);
    const std::int64_t event = event_of(a.event, {});
    json_ = "{}";
    if (a.event.message_size > 0) {
        json_ = "{\"flags\":";
        append_json(json_, {behind(entry) + sizeof a, a.event.message_size});
        json_ += '}';
    }
    tables_.allocation(a, tid, json_, event);
}

void Work::sample(const Head& entry) {
    const auto s = body<Value>(entry);
    references_.track(s.target);
    const std::int64_t event = tables_.event({sample_, 0, 0, 0, {}});
    tables_.sample(s.target, entry.time, event);
    if (s.counter < 0) return;
    references_.counter(s.counter);
    tables_.value(event, s.counter, s.value);
}

void Work::counter(const Head& entry) {
    const auto v = body<Value>(entry);
    references_.counter(v.counter);
    if (const std::int64_t event = event_of_dispatch(v.target); event != 0)
        return tables_.value(event, v.counter, v.value);
    if (early_values_ == kMostEarly) end_all();
    early_[v.target].emplace_back(v.counter, v.value);
    ++early_values_;
}

void Work::end_all() {
    for (const auto& [dispatch, values] : early_)
        for (const auto& [counter, number] : values) tables_.value(0, counter, number);
    early_.clear();
    early_values_ = 0;
}

}  // namespace rocpd
