#include "gpu_rows.h"

#include "registrations.h"
#include "json.h"
#include "lifecycle.h"
#include "texts.h"

namespace rocpd {
namespace {

// Values come within moments of their dispatch; these limits bound the memory of runs that take days.
constexpr std::size_t kGeneration = std::size_t{1} << 18;  // dispatches
constexpr std::size_t kMostEarly = std::size_t{1} << 19;   // values

}  // namespace

GpuRows::GpuRows(Tables& tables, ReferencedRows& referenced)
    : tables_(tables), referenced_(referenced), sample_(texts().number("PROCESS_SAMPLE")) {}

std::uint32_t GpuRows::thread_of(const rocpd_event_t& e, const ThreadBuffer& thread) {
    if (e.tid == 0 || e.tid == thread.tid) {
        referenced_.thread(thread.tid, static_cast<std::int64_t>(thread.began));
        return thread.tid;
    }
    referenced_.thread(e.tid, nullptr);
    return e.tid;
}

std::int64_t GpuRows::event_of(const rocpd_event_t& e, std::string_view message) {
    json_.clear();
    if (message.empty()) message = texts().text(e.message_text);
    if (!message.empty()) {
        json_ = "{\"message\":";
        append_json(json_, message);
        json_ += '}';
    }
    return tables_.event({e.category, e.stack_id, e.parent_stack_id, e.correlation_id, json_});
}

void GpuRows::region(ThreadBuffer& thread, const Head& entry) {
    const auto r = body<rocpd_region_t>(entry);
    const char* at = after_head(entry) + sizeof r;
    const std::uint32_t tid = thread_of(r.event, thread);
    const std::int64_t event = event_of(r.event, {at, r.event.message_size});
    tables_.region(tid, r.start, r.end, r.name, event);
    arguments(at + padded(r.event.message_size), r.argument_count, event);
}

void GpuRows::arguments(const char* at, std::size_t count, std::int64_t event) {
    for (std::size_t position = 0; position < count; ++position) {
        Argument argument{};
        std::memcpy(&argument, at, sizeof argument);
        at += sizeof argument;
        const std::string value = readable({at, argument.size});
        at += padded(argument.size);
        tables_.argument(event, position, texts().text(argument.type), texts().text(argument.name), value);
    }
}

void GpuRows::refer_to(std::int64_t agent, std::int64_t queue, std::int64_t stream) {
    if (agent >= 0) referenced_.agent(agent);
    if (queue >= 0) referenced_.queue(queue);
    if (stream >= 0) referenced_.stream(stream);
}

void GpuRows::dispatch(ThreadBuffer& thread, const Head& entry) {
    const auto d = body<rocpd_dispatch_t>(entry);
    const std::uint32_t tid = thread_of(d.event, thread);
    // These columns take no NULL: an unknown id gets a row of its own.
    referenced_.agent(d.agent_id);
    referenced_.queue(d.queue_id);
    referenced_.stream(d.stream_id);
    referenced_.kernel(d.kernel_id);
    const std::int64_t event = event_of(d.event, {after_head(entry) + sizeof d, d.event.message_size});
    tables_.dispatch(d, tid, event);
    if (registrations().has_counters()) remember(d.dispatch_id, event);
}

void GpuRows::remember(std::int64_t dispatch, std::int64_t event) {
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

std::int64_t GpuRows::event_of_dispatch(std::int64_t dispatch) const {
    if (const auto found = young_.find(dispatch); found != young_.end()) return found->second;
    const auto found = old_.find(dispatch);
    return found != old_.end() ? found->second : 0;
}

void GpuRows::copy(ThreadBuffer& thread, const Head& entry) {
    const auto c = body<rocpd_copy_t>(entry);
    const std::uint32_t tid = thread_of(c.event, thread);
    refer_to(c.dst_agent_id, c.queue_id, c.stream_id);
    if (c.src_agent_id >= 0) referenced_.agent(c.src_agent_id);
    tables_.copy(c, tid, event_of(c.event, {after_head(entry) + sizeof c, c.event.message_size}));
}

void GpuRows::allocation(ThreadBuffer& thread, const Head& entry) {
    const auto a = body<rocpd_allocation_t>(entry);
    const std::uint32_t tid = thread_of(a.event, thread);
    refer_to(a.agent_id, a.queue_id, a.stream_id);
    const std::int64_t event = event_of(a.event, {});
    json_ = "{}";
    if (a.event.message_size > 0) {
        json_ = "{\"flags\":";
        append_json(json_, {after_head(entry) + sizeof a, a.event.message_size});
        json_ += '}';
    }
    tables_.allocation(a, tid, json_, event);
}

void GpuRows::graph_launch(ThreadBuffer& thread, const Head& entry) {
    const auto g = body<rocpd_graph_launch_t>(entry);
    const std::uint32_t tid = thread_of(g.event, thread);
    refer_to(g.agent_id, g.queue_id, -1);
    tables_.graph_launch(g, tid, event_of(g.event, {after_head(entry) + sizeof g, g.event.message_size}));
}

void GpuRows::sample(const Head& entry) {
    value_on_track(body<Value>(entry), entry.time, tables_.event({sample_, 0, 0, 0, {}}));
}

void GpuRows::samples(const Head& entry) {
    const auto category = static_cast<std::uint32_t>(body<std::uint64_t>(entry));
    const std::string_view whole = text_of(entry);
    const std::int64_t event = tables_.event({category, 0, 0, 0, {}});
    for (std::size_t at = sizeof(std::uint64_t); at + sizeof(Value) <= whole.size(); at += sizeof(Value)) {
        Value value{};
        std::memcpy(&value, whole.data() + at, sizeof value);
        value_on_track(value, entry.time, event);
    }
}

void GpuRows::value_on_track(const Value& value, std::uint64_t time, std::int64_t event) {
    referenced_.track(value.target);
    tables_.sample(value.target, time, event);
    if (value.counter < 0) return;
    referenced_.counter(value.counter);
    tables_.value(event, value.counter, value.value);
}

void GpuRows::counter(const Head& entry) {
    const auto v = body<Value>(entry);
    referenced_.counter(v.counter);
    if (const std::int64_t event = event_of_dispatch(v.target); event != 0)
        return tables_.value(event, v.counter, v.value);
    if (early_values_ == kMostEarly) end_all();
    early_[v.target].emplace_back(v.counter, v.value);
    ++early_values_;
}

void GpuRows::end_all() {
    for (const auto& [dispatch, values] : early_)
        for (const auto& [counter, number] : values) tables_.value(0, counter, number);
    early_.clear();
    early_values_ = 0;
}

}  // namespace rocpd
