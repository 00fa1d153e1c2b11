#include "rows.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "clock.h"
#include "config.h"
#include "facts.h"
#include "guid.h"
#include "json.h"
#include "lifecycle.h"
#include "texts.h"

namespace rocpd {

std::atomic<std::uint64_t> g_next_stack{1};

namespace {

constexpr const char* kTypes[] = {"ALLOC", "FREE", "REALLOC", "RECLAIM"};
constexpr const char* kLevels[] = {"REAL", "VIRTUAL", "SCRATCH"};

const char* behind(const Head& entry) { return reinterpret_cast<const char*>(&entry) + sizeof(Head); }

// Text that is all of an entry: `flags` holds how many bytes of padding follow it.
std::string_view text_of(const Head& entry) { return {behind(entry), entry.size - sizeof(Head) - entry.flags}; }

template <typename T>
T body(const Head& entry) {
    T value;
    std::memcpy(&value, behind(entry), sizeof value);
    return value;
}

// File names go through many tools: nothing but letters, digits, dot, dash and underscore.
std::string name_part(const std::string& host) {
    std::string part = host.empty() ? "localhost" : host;
    for (char& c : part)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr(".-_", c) == nullptr) c = '_';
    return part.substr(0, 64);
}

std::string stem(const Identity& identity) {
    const std::string process = name_part(identity.host) + "-" + std::to_string(identity.pid);
    return identity.rank < 0 ? process : "rank" + std::to_string(identity.rank) + "-" + process;
}

std::string thread_name(std::uint32_t tid) {
    const std::string path = "/proc/self/task/" + std::to_string(tid) + "/comm";
    std::string name;
    if (FILE* file = std::fopen(path.c_str(), "re")) {
        char text[64];
        if (std::fgets(text, sizeof text, file) != nullptr) name = text;
        std::fclose(file);
    }
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return readable(name);
}

std::int64_t as_integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::string quoted(const char* table, const std::string& suffix) { return "\"" + (table + suffix) + "\""; }

}  // namespace

Rows::Rows(const Identity& identity)
    : identity_(identity),
      ranges_(texts().number("MARKER_CORE_RANGE_API")),
      core_(texts().number("MARKER_CORE_API")),
      thread_range_(texts().number("roctxThreadRangeA")),
      process_range_(texts().number("roctxProcessRangeA")),
      mark_(texts().number("roctxMarkA")),
      sample_category_(texts().number("PROCESS_SAMPLE")),
      nothing_(texts().number("")) {
    database_ = std::make_unique<Database>(config().folder, stem(identity_), new_guid());
    prepare();
    begin();
    write_identity();
}

void Rows::prepare() {
    event_ = database_->batch("rocpd_event",
                                "id, category_id, stack_id, parent_stack_id, correlation_id, extdata");
    region_ = database_->batch("rocpd_region", "nid, pid, tid, start, \"end\", name_id, event_id");
    argument_ = database_->batch("rocpd_arg", "event_id, position, type, name, value");
    dispatch_ = database_->batch(
        "rocpd_kernel_dispatch",
        "nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, \"end\", private_segment_size, "
        "group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
        "grid_size_z, region_name_id, event_id");
    copy_ = database_->batch("rocpd_memory_copy",
                               "nid, pid, tid, start, \"end\", name_id, dst_agent_id, dst_address, src_agent_id, "
                               "src_address, size, queue_id, stream_id, region_name_id, event_id");
    allocation_ = database_->batch(
        "rocpd_memory_allocate",
        "nid, pid, tid, agent_id, type, level, start, \"end\", address, size, queue_id, stream_id, event_id, extdata");
    sample_ = database_->batch("rocpd_sample", "track_id, timestamp, event_id");
    pmc_event_ = database_->batch("rocpd_pmc_event", "event_id, pmc_id, value");
    string_ = database_->batch("rocpd_string", "id, string");
}

std::array<Batch*, 9> Rows::batches() {
    return {&event_, &region_, &argument_, &dispatch_, &copy_, &allocation_, &sample_, &pmc_event_, &string_};
}

void Rows::flush() {
    for (Batch* batch : batches()) batch->flush();
}

void Rows::begin() {
    if (database_->in_transaction()) return;
    if (database_->begin()) {
        for (Batch* batch : batches()) batch->leak();
        prepare();
    }
    write_new();
}

void Rows::write_identity() {
    const Identity& id = identity_;
    put(kNode, {id.node_id, id.node_hash, id.machine_id, id.system, id.host, id.release, id.version, id.hardware,
                id.domain});
    put(kProcess, {id.pid, id.node_id, id.ppid, id.pid, as_integer(id.init), as_integer(id.start), id.command,
                   id.environment, id.extdata});
    const Config& c = config();
    put(kMetadata, {std::string("recorder"), std::string("librocpd-recorder")});
    put(kMetadata, {std::string("recorder_clock"), std::string("CLOCK_BOOTTIME")});
    put(kMetadata, {std::string("recorder_flush_ms"), std::to_string(c.flush_ms)});
    put(kMetadata, {std::string("recorder_overflow"), std::string(c.drop ? "drop" : "block")});
    if (!c.run.empty()) put(kMetadata, {std::string("recorder_run"), readable(c.run)});
    for (const char* tag : {"recorder_lost_events", "recorder_cut_texts", "recorder_waits", "recorder_closed"})
        put(kMetadata, {std::string(tag), std::string("0")});
}

void Rows::put(const Table& table, std::vector<Cell> cells) {
    database_->write({&table, std::move(cells)}, identity_.node_id, identity_.pid);
}

void Rows::write_new() {
    for (const Fact& fact : facts().after(facts_written_)) {
        if (const auto* id = std::get_if<std::int64_t>(&fact.cells.front())) known_[fact.table].insert(*id);
        database_->write(fact, identity_.node_id, identity_.pid);
        ++facts_written_;
    }
    // After the facts, which name texts.
    for (const std::string& text : texts().after(strings_written_)) {
        ++strings_written_;
        string_.integer(as_integer(strings_written_)).text(text).run();
    }
}

void Rows::write_losses(const Losses& losses) {
    if (losses == losses_) return;
    losses_ = losses;
    const std::string table = quoted("rocpd_metadata", database_->suffix());
    const auto set = [&](const char* tag, std::uint64_t value) {
        database_->execute("UPDATE " + table + " SET value = '" + std::to_string(value) + "' WHERE tag = '" + tag + "'");
    };
    set("recorder_lost_events", losses.lost);
    set("recorder_cut_texts", losses.cuts);
    set("recorder_waits", losses.waits);
}

void Rows::commit(const Losses& losses) {
    if (!(losses == losses_)) begin();
    if (!database_->in_transaction()) return;
    write_new();
    write_losses(losses);
    flush();
    database_->commit();
}

Timeline& Rows::timeline(ThreadBuffer& thread) {
    if (thread.timeline == nullptr) {
        timelines_.push_back(std::make_unique<Timeline>());
        thread.timeline = timelines_.back().get();
        need_thread(thread.tid, thread.began);
    }
    return *thread.timeline;
}

// ---- what rows refer to ----

void Rows::need_thread(std::uint32_t tid, std::uint64_t began) {
    if (!is_new(kThreadTable, tid)) return;
    put(kThreadTable, {std::int64_t{tid}, identity_.node_id, identity_.ppid, identity_.pid, std::int64_t{tid},
                       thread_name(tid), as_integer(began)});
}

void Rows::need(const Table& table, std::int64_t id, const char* what) {
    if (!is_new(table, id)) return;
    const std::string name = id == 0 ? std::string("Default ") + what : what + (" " + std::to_string(id));
    if (&table == &kAgent) {
        put(kAgent, {id, nullptr, id, nullptr, nullptr, nullptr, name, nullptr, nullptr, nullptr, nullptr,
                     std::string("{}")});
    } else {
        put(table, {id, name});
    }
}

void Rows::need_kernel(std::int64_t id) {
    if (!is_new(kSymbol, id)) return;
    if (is_new(kCodeObject, 0))
        put(kCodeObject, {std::int64_t{0}, nullptr, std::string("unknown"), nullptr, nullptr, nullptr, nullptr,
                          std::string("{}")});
    const std::string name = "kernel " + std::to_string(id);
    std::vector<Cell> cells = {id, std::int64_t{0}, name, name};
    cells.resize(12, nullptr);
    cells.emplace_back(std::string("{}"));
    put(kSymbol, std::move(cells));
}

// ---- rows ----

std::int64_t Rows::event(const Event& e) {
    event_.integer(++last_event_)
        .integer(e.category)
        .integer(as_integer(e.stack_id))
        .integer(as_integer(e.parent))
        .integer(as_integer(e.correlation))
        .text(e.extdata.empty() ? std::string_view("{}") : e.extdata)
        .run();
    ++events_;
    return last_event_;
}

void Rows::region(std::uint32_t tid, std::uint64_t start, std::uint64_t end, std::uint32_t name, std::int64_t event) {
    region_.integer(identity_.node_id)
        .integer(identity_.pid)
        .integer(tid)
        .integer(as_integer(start))
        .integer(as_integer(end))
        .integer(name)
        .integer(event)
        .run();
}

void Rows::marker(const Open& range, std::uint64_t end, std::uint32_t category, std::uint32_t name, bool unfinished) {
    json_ = "{\"message\":";
    append_json(json_, range.text);
    json_ += unfinished ? ",\"unfinished\":true}" : "}";
    region(range.tid, range.start, end, name, event({category, range.stack_id, range.parent, 0, json_}));
}

void Rows::push(ThreadBuffer& thread, const Head& entry) {
    Timeline& line = timeline(thread);
    if (line.ranges.size() == line.depth) line.ranges.emplace_back();
    Open& range = line.ranges[line.depth];
    range.start = entry.time;
    range.stack_id = g_next_stack.fetch_add(1, std::memory_order_relaxed);
    range.parent = line.depth > 0 ? line.ranges[line.depth - 1].stack_id : 0;
    range.tid = thread.tid;
    range.text = text_of(entry);
    ++line.depth;
}

void Rows::pop(ThreadBuffer& thread, std::uint64_t time, bool unfinished) {
    Timeline& line = timeline(thread);
    if (line.depth == 0) return;
    marker(line.ranges[--line.depth], time, ranges_, thread_range_, unfinished);
}

void Rows::mark(ThreadBuffer& thread, const Head& entry) {
    const Timeline& line = timeline(thread);
    Open range;
    range.start = entry.time;
    range.stack_id = g_next_stack.fetch_add(1, std::memory_order_relaxed);
    range.parent = line.depth > 0 ? line.ranges[line.depth - 1].stack_id : 0;
    range.tid = thread.tid;
    range.text = text_of(entry);
    marker(range, entry.time, core_, mark_, false);
}

void Rows::begin_range(ThreadBuffer& thread, const Head& entry) {
    const Timeline& line = timeline(thread);
    const auto numbered = body<Numbered>(entry);
    Open range;
    range.start = entry.time;
    range.stack_id = g_next_stack.fetch_add(1, std::memory_order_relaxed);
    range.parent = line.depth > 0 ? line.ranges[line.depth - 1].stack_id : 0;
    range.tid = thread.tid;
    range.text.assign(behind(entry) + sizeof numbered, numbered.text_size);
    const auto early = ended_.find(numbered.id);
    if (early == ended_.end()) {
        begun_.emplace(numbered.id, std::move(range));
        return;
    }
    marker(range, early->second, ranges_, process_range_, false);
    ended_.erase(early);
}

void Rows::end_range(const Head& entry) {
    const auto numbered = body<Numbered>(entry);
    const auto begun = begun_.find(numbered.id);
    if (begun == begun_.end()) {
        ended_.emplace(numbered.id, entry.time);  // another thread's ring, not read yet
        return;
    }
    marker(begun->second, entry.time, ranges_, process_range_, false);
    begun_.erase(begun);
}

void Rows::name_thread(ThreadBuffer& thread, std::string_view name) {
    timeline(thread);
    put(kThreadTable, {std::int64_t{thread.tid}, identity_.node_id, identity_.ppid, identity_.pid,
                       std::int64_t{thread.tid}, readable(name), as_integer(thread.began)});
}

std::uint32_t Rows::thread_of(const rocpd_event_t& e, const ThreadBuffer& thread) {
    const std::uint32_t tid = e.tid != 0 ? e.tid : thread.tid;
    need_thread(tid, thread.began);
    return tid;
}

std::int64_t Rows::event_of(const rocpd_event_t& e, const char* message, bool message_is_flags) {
    json_.clear();
    if (e.message_size > 0 && !message_is_flags) {
        json_ = "{\"message\":";
        append_json(json_, {message, e.message_size});
        json_ += '}';
    } else if (e.message_text != 0) {
        json_ = "{\"message\":";
        append_json(json_, texts().text(e.message_text));
        json_ += '}';
    }
    return event({e.category, e.stack_id, e.parent_stack_id, e.correlation_id, json_});
}

void Rows::api_region(ThreadBuffer& thread, const Head& entry) {
    const auto r = body<rocpd_region_t>(entry);
    const char* at = behind(entry) + sizeof r;
    const std::uint32_t tid = thread_of(r.event, thread);
    const std::int64_t id = event_of(r.event, at, false);
    region(tid, r.start, r.end, r.name, id);
    arguments(at + padded(r.event.message_size), r.argument_count, id);
}

void Rows::arguments(const char* at, std::size_t count, std::int64_t event) {
    const auto name_of = [this](rocpd_text_t text) { return texts().text(text); };
    for (std::size_t position = 0; position < count; ++position) {
        Argument argument{};
        std::memcpy(&argument, at, sizeof argument);
        at += sizeof argument;
        const std::string type = name_of(argument.type);
        const std::string name = name_of(argument.name);
        const std::string value = readable({at, argument.size});
        at += padded(argument.size);
        argument_.integer(event).integer(as_integer(position)).text(type).text(name).text(value).run();
    }
}

void Rows::dispatch(ThreadBuffer& thread, const Head& entry) {
    const auto d = body<rocpd_dispatch_t>(entry);
    const std::uint32_t tid = thread_of(d.event, thread);
    need(kAgent, d.agent_id, "agent");
    need(kQueue, d.queue_id, "Queue");
    need(kStream, d.stream_id, "Stream");
    need_kernel(d.kernel_id);
    const std::int64_t id = event_of(d.event, behind(entry) + sizeof d, false);
    dispatch_.integer(identity_.node_id).integer(identity_.pid).integer(tid).integer(d.agent_id).integer(d.kernel_id);
    dispatch_.integer(d.dispatch_id).integer(d.queue_id).integer(d.stream_id);
    dispatch_.integer(as_integer(d.start)).integer(as_integer(d.end));
    dispatch_.integer(d.private_segment_size).integer(d.group_segment_size);
    for (const std::uint32_t size : d.workgroup_size) dispatch_.integer(size);
    for (const std::uint32_t size : d.grid_size) dispatch_.integer(size);
    dispatch_.integer(d.region_name != 0 ? d.region_name : nothing_).integer(id).run();
    if (known_[&kPmc].empty()) return;
    dispatch_events_[d.dispatch_id] = id;
    const auto early = early_values_.find(d.dispatch_id);
    if (early == early_values_.end()) return;
    for (const auto& [pmc, number] : early->second) value(id, pmc, number);
    early_values_.erase(early);
}

void Rows::copy(ThreadBuffer& thread, const Head& entry) {
    const auto c = body<rocpd_copy_t>(entry);
    const std::uint32_t tid = thread_of(c.event, thread);
    for (const std::int64_t agent : {c.dst_agent_id, c.src_agent_id})
        if (agent >= 0) need(kAgent, agent, "agent");
    if (c.queue_id >= 0) need(kQueue, c.queue_id, "Queue");
    if (c.stream_id >= 0) need(kStream, c.stream_id, "Stream");
    const std::int64_t id = event_of(c.event, behind(entry) + sizeof c, false);
    copy_.integer(identity_.node_id).integer(identity_.pid).integer(tid);
    copy_.integer(as_integer(c.start)).integer(as_integer(c.end)).integer(c.name);
    copy_.integer_or_null(c.dst_agent_id, c.dst_agent_id < 0).integer(as_integer(c.dst_address));
    copy_.integer_or_null(c.src_agent_id, c.src_agent_id < 0).integer(as_integer(c.src_address));
    copy_.integer(as_integer(c.size));
    copy_.integer_or_null(c.queue_id, c.queue_id < 0).integer_or_null(c.stream_id, c.stream_id < 0);
    copy_.integer(c.region_name != 0 ? c.region_name : nothing_).integer(id).run();
}

void Rows::allocation(ThreadBuffer& thread, const Head& entry) {
    const auto a = body<rocpd_allocation_t>(entry);
    const std::uint32_t tid = thread_of(a.event, thread);
    if (a.agent_id >= 0) need(kAgent, a.agent_id, "agent");
    if (a.queue_id >= 0) need(kQueue, a.queue_id, "Queue");
    if (a.stream_id >= 0) need(kStream, a.stream_id, "Stream");
    const std::int64_t id = event_of(a.event, nullptr, true);
    json_ = "{}";
    if (a.event.message_size > 0) {
        json_ = "{\"flags\":";
        append_json(json_, {behind(entry) + sizeof a, a.event.message_size});
        json_ += '}';
    }
    allocation_.integer(identity_.node_id).integer(identity_.pid).integer(tid);
    allocation_.integer_or_null(a.agent_id, a.agent_id < 0);
    allocation_.text(kTypes[a.type]).text(kLevels[a.level]);
    allocation_.integer(as_integer(a.start)).integer(as_integer(a.end));
    allocation_.integer(as_integer(a.address)).integer(as_integer(a.size));
    allocation_.integer_or_null(a.queue_id, a.queue_id < 0).integer_or_null(a.stream_id, a.stream_id < 0);
    allocation_.integer(id).text(json_).run();
}

void Rows::sample(const Head& entry) {
    const auto s = body<Value>(entry);
    const std::int64_t id = event({sample_category_, 0, 0, 0, {}});
    sample_.integer(s.target).integer(as_integer(entry.time)).integer(id).run();
    if (s.counter >= 0) value(id, s.counter, s.value);
}

void Rows::counter(const Head& entry) {
    const auto v = body<Value>(entry);
    const auto found = dispatch_events_.find(v.target);
    if (found == dispatch_events_.end())
        early_values_[v.target].emplace_back(v.counter, v.value);
    else
        value(found->second, v.counter, v.value);
}

void Rows::value(std::int64_t event, std::int64_t counter, double value) {
    if (event > 0)
        pmc_event_.integer(event);
    else
        pmc_event_.nothing();
    pmc_event_.integer(counter).real(value).run();
}

void Rows::take(ThreadBuffer& thread, const Head& entry) {
    switch (entry.kind) {
        case kPush: return push(thread, entry);
        case kPop: return pop(thread, entry.time, false);
        case kBegin: return begin_range(thread, entry);
        case kEnd: return end_range(entry);
        case kMark: return mark(thread, entry);
        case kThread: return name_thread(thread, text_of(entry));
        case kRegion: return api_region(thread, entry);
        case kDispatch: return dispatch(thread, entry);
        case kCopy: return copy(thread, entry);
        case kAllocate: return allocation(thread, entry);
        case kSample: return sample(entry);
        case kCounter: return counter(entry);
        default: return;
    }
}

void Rows::end_thread(ThreadBuffer& thread, std::uint64_t time) {
    if (thread.timeline == nullptr) return;
    while (thread.timeline->depth > 0) pop(thread, time, true);
    database_->execute("UPDATE " + quoted("rocpd_info_thread", database_->suffix()) +
                       " SET \"end\" = " + std::to_string(time) + " WHERE id = " + std::to_string(thread.tid));
    thread.timeline->ranges.clear();
    thread.timeline->ranges.shrink_to_fit();
}

void Rows::close(const std::vector<ThreadBuffer*>& threads, const Losses& losses) {
    const std::uint64_t time = now_ns();
    begin();
    for (ThreadBuffer* thread : threads) end_thread(*thread, time);
    for (const auto& [id, range] : begun_) marker(range, time, ranges_, process_range_, true);
    begun_.clear();
    for (const auto& [dispatch, values] : early_values_)
        for (const auto& [pmc, number] : values) value(0, pmc, number);
    early_values_.clear();
    write_new();
    write_losses(losses);
    database_->execute("UPDATE " + quoted("rocpd_info_process", database_->suffix()) +
                       " SET fini = " + std::to_string(time) + ", \"end\" = " + std::to_string(time));
    database_->execute("UPDATE " + quoted("rocpd_metadata", database_->suffix()) +
                       " SET value = '1' WHERE tag = 'recorder_closed'");
    flush();
    database_->commit();
    // Statements have to go before their connection.
    for (Batch* batch : batches()) *batch = Batch();
    database_->close();
}

}  // namespace rocpd
