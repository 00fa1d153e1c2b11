#include "tables.h"

#include <cctype>
#include <cstring>
#include <utility>

#include "config.h"
#include "guid.h"
#include "json.h"
#include "lifecycle.h"
#include "sqlite.h"
#include "state.h"
#include "texts.h"

namespace rocpd {
namespace {

constexpr const char* kTypes[] = {"ALLOC", "FREE", "REALLOC", "RECLAIM"};
constexpr const char* kLevels[] = {"REAL", "VIRTUAL", "SCRATCH"};

std::int64_t as_integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// File names pass through many tools: only letters, digits, dot, dash and underscore.
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

}  // namespace

Tables::Tables(Identity identity)
    : identity_(std::move(identity)),
      database_(config().folder, stem(identity_), new_guid()),
      graphs_(g_state.graphs.load()),
      no_region_(texts().number("")) {
    if (!begin()) fail("cannot write", "another process has locked the new file");
    describe_process();
}

void Tables::prepare() {
    event_ = database_.batch("rocpd_event", "id, category_id, stack_id, parent_stack_id, correlation_id, extdata");
    stack_event_ = database_.batch("rocpd_event", "id, category_id, call_stack, line_info, extdata");
    region_ = database_.batch("rocpd_region", "nid, pid, tid, start, \"end\", name_id, event_id");
    argument_ = database_.batch("rocpd_arg", "event_id, position, type, name, value");
    const std::string node = graphs_ ? ", graph_exec_id, graph_node_id" : "";
    const std::string of_dispatch =
        "nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, \"end\", private_segment_size, "
        "group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
        "grid_size_z, region_name_id, event_id";
    const std::string of_copy =
        "nid, pid, tid, start, \"end\", name_id, dst_agent_id, dst_address, src_agent_id, src_address, size, queue_id, "
        "stream_id, region_name_id, event_id";
    dispatch_ = database_.batch("rocpd_kernel_dispatch", (of_dispatch + node).c_str());
    copy_ = database_.batch("rocpd_memory_copy", (of_copy + node).c_str());
    if (graphs_)
        graph_ = database_.batch("rocpd_graph_launch",
                                 "nid, pid, tid, agent_id, queue_id, start, \"end\", graph_exec_id, "
                                 "kernel_dispatch_count, event_id");
    allocation_ = database_.batch(
        "rocpd_memory_allocate",
        "nid, pid, tid, agent_id, type, level, start, \"end\", address, size, queue_id, stream_id, event_id, extdata");
    sample_ = database_.batch("rocpd_sample", "track_id, timestamp, event_id");
    value_ = database_.batch("rocpd_pmc_event", "event_id, pmc_id, value");
    string_ = database_.batch("rocpd_string", "id, string");
}

std::vector<Batch*> Tables::batches() {
    std::vector<Batch*> all = {&event_, &stack_event_, &region_, &argument_, &dispatch_,
                               &copy_,  &allocation_,  &sample_, &value_,    &string_};
    if (graphs_) all.push_back(&graph_);
    return all;
}

bool Tables::begin() {
    const bool begun = database_.begin();
    if (prepared_for_ != database_.connections()) {
        for (Batch* batch : batches()) batch->leak();
        prepare();
        prepared_for_ = database_.connections();
    }
    return begun;
}

bool Tables::commit() {
    for (Batch* batch : batches()) batch->flush();
    return database_.commit();
}

void Tables::close() {
    // Statements must be finalized before their connection.
    for (Batch* batch : batches()) *batch = Batch();
    database_.close();
}

void Tables::describe_process() {
    const Identity& id = identity_;
    put(kNode, {id.node_id, id.node_hash, id.machine_id, id.system, id.host, id.release, id.version, id.hardware,
                id.domain});
    put(kProcess, {id.pid, id.node_id, id.ppid, id.pid, as_integer(id.init), as_integer(id.start), id.command,
                   id.environment, id.extdata});
    const Config& c = config();
    note("recorder", "librocpd-recorder");
    note("recorder_clock", "CLOCK_BOOTTIME");
    note("recorder_flush_ms", std::to_string(c.flush_ms));
    note("recorder_overflow", c.drop ? "drop" : "block");
    if (!c.run.empty()) note("recorder_run", readable(c.run));
    for (const char* tag : {"recorder_lost_events", "recorder_cut_texts", "recorder_waits", "recorder_closed"})
        note(tag, "0");
}

void Tables::put(const Table& table, std::vector<Cell> cells) { put(Registration{&table, std::move(cells)}); }

std::int64_t Tables::event(const Event& e) {
    event_.integer(++last_event_)
        .integer(e.category)
        .integer(as_integer(e.stack_id))
        .integer(as_integer(e.parent))
        .integer(as_integer(e.correlation))
        .text(e.extdata.empty() ? std::string_view("{}") : e.extdata)
        .run();
    return last_event_;
}

std::int64_t Tables::stack_event(std::uint32_t category, const StackEvent& event) {
    stack_event_.integer(++last_event_).integer(category);
    stack_event_.text(event.call_stack).text(event.line_info).text(event.extdata).run();
    return last_event_;
}

void Tables::region(std::uint32_t tid, std::uint64_t start, std::uint64_t end, std::uint32_t name,
                    std::int64_t event) {
    region_.integer(identity_.node_id).integer(identity_.pid).integer(tid);
    region_.integer(as_integer(start)).integer(as_integer(end)).integer(name).integer(event).run();
}

void Tables::argument(std::int64_t event, std::size_t position, std::string_view type, std::string_view name,
                      std::string_view value) {
    argument_.integer(event).integer(as_integer(position)).text(type).text(name).text(value).run();
}

template <typename Work>
void Tables::add_node(Batch& batch, const Work& work) {
    if (!graphs_) return;
    if (work.graph_exec_id != 0)
        batch.integer(as_integer(work.graph_exec_id)).integer(as_integer(work.graph_node_id));
    else
        batch.nothing().nothing();
}

void Tables::dispatch(const rocpd_dispatch_t& d, std::uint32_t tid, std::int64_t event) {
    dispatch_.integer(identity_.node_id).integer(identity_.pid).integer(tid).integer(d.agent_id).integer(d.kernel_id);
    dispatch_.integer(d.dispatch_id).integer(d.queue_id).integer(d.stream_id);
    dispatch_.integer(as_integer(d.start)).integer(as_integer(d.end));
    dispatch_.integer(d.private_segment_size).integer(d.group_segment_size);
    for (const std::uint32_t size : d.workgroup_size) dispatch_.integer(size);
    for (const std::uint32_t size : d.grid_size) dispatch_.integer(size);
    dispatch_.integer(d.region_name != 0 ? d.region_name : no_region_).integer(event);
    add_node(dispatch_, d);
    dispatch_.run();
}

void Tables::copy(const rocpd_copy_t& c, std::uint32_t tid, std::int64_t event) {
    copy_.integer(identity_.node_id).integer(identity_.pid).integer(tid);
    copy_.integer(as_integer(c.start)).integer(as_integer(c.end)).integer(c.name);
    copy_.integer_or_null(c.dst_agent_id).integer(as_integer(c.dst_address));
    copy_.integer_or_null(c.src_agent_id).integer(as_integer(c.src_address));
    copy_.integer(as_integer(c.size)).integer_or_null(c.queue_id).integer_or_null(c.stream_id);
    copy_.integer(c.region_name != 0 ? c.region_name : no_region_).integer(event);
    add_node(copy_, c);
    copy_.run();
}

void Tables::allocation(const rocpd_allocation_t& a, std::uint32_t tid, std::string_view extdata,
                        std::int64_t event) {
    allocation_.integer(identity_.node_id).integer(identity_.pid).integer(tid).integer_or_null(a.agent_id);
    allocation_.text(kTypes[a.type]).text(kLevels[a.level]);
    allocation_.integer(as_integer(a.start)).integer(as_integer(a.end));
    allocation_.integer(as_integer(a.address)).integer(as_integer(a.size));
    allocation_.integer_or_null(a.queue_id).integer_or_null(a.stream_id).integer(event).text(extdata).run();
}

void Tables::graph_launch(const rocpd_graph_launch_t& g, std::uint32_t tid, std::int64_t event) {
    if (!graphs_) return;
    graph_.integer(identity_.node_id).integer(identity_.pid).integer(tid).integer_or_null(g.agent_id);
    graph_.integer_or_null(g.queue_id).integer(as_integer(g.start)).integer(as_integer(g.end));
    graph_.integer(as_integer(g.graph_exec_id)).integer(as_integer(g.kernel_dispatch_count)).integer(event).run();
}

void Tables::sample(std::int64_t track, std::uint64_t time, std::int64_t event) {
    sample_.integer(track).integer(as_integer(time)).integer(event).run();
}

void Tables::value(std::int64_t event, std::int64_t counter, double value) {
    if (event != 0)
        value_.integer(event);
    else
        value_.nothing();
    value_.integer(counter).real(value).run();
}

void Tables::string(std::size_t id, std::string_view text) { string_.integer(as_integer(id)).text(text).run(); }

void Tables::end_thread(std::uint32_t tid, std::uint64_t time) {
    database_.update("rocpd_info_thread", "\"end\" = " + std::to_string(time), "id = " + std::to_string(tid));
}

void Tables::end_process(std::uint64_t time) {
    const std::string now = std::to_string(time), process = std::to_string(identity_.pid);
    database_.update("rocpd_info_process", "fini = " + now + ", \"end\" = " + now, "id = " + process);
}

}  // namespace rocpd
