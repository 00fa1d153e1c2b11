#include "collectives.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "forks.h"
#include "kinds.h"
#include "rocpd/recorder.h"

namespace rocpd::client {

class Batch {
public:
    // `slot` is the recorder's number of the group.
    void enter(int slot, const char* name, std::uint64_t bytes) {
        if (slot >= 0) entered_.push_back({slot, rocpd_group_enter(slot, name, bytes), name});
    }
    void launch() { open_.fetch_add(1); }
    void end() {
        if (open_.fetch_sub(1) != 1) return;
        for (const Entered& each : entered_) rocpd_group_leave(each.slot, each.number, each.name);
    }

private:
    struct Entered {
        int slot;
        std::uint64_t number;
        const char* name;
    };
    std::atomic<int> open_{1};  // its call, and what that launched
    std::vector<Entered> entered_;
};

namespace {

using Call = rocprofiler_callback_tracing_rccl_api_data_t;

// Those that are followed; the SDK's numbers of others may mean something else in later versions.
constexpr rocprofiler_tracing_operation_t kFollowed[] = {
    ROCPROFILER_RCCL_API_ID_ncclAllGather,         ROCPROFILER_RCCL_API_ID_ncclAllReduce,
    ROCPROFILER_RCCL_API_ID_ncclAllToAll,          ROCPROFILER_RCCL_API_ID_ncclAllToAllv,
    ROCPROFILER_RCCL_API_ID_ncclBroadcast,         ROCPROFILER_RCCL_API_ID_ncclGather,
    ROCPROFILER_RCCL_API_ID_ncclReduce,            ROCPROFILER_RCCL_API_ID_ncclReduceScatter,
    ROCPROFILER_RCCL_API_ID_ncclScatter,           ROCPROFILER_RCCL_API_ID_ncclSend,
    ROCPROFILER_RCCL_API_ID_ncclRecv,              ROCPROFILER_RCCL_API_ID_ncclGroupStart,
    ROCPROFILER_RCCL_API_ID_ncclGroupEnd,          ROCPROFILER_RCCL_API_ID_ncclCommInitRank,
    ROCPROFILER_RCCL_API_ID_ncclCommInitRankConfig, ROCPROFILER_RCCL_API_ID_ncclCommDestroy,
    ROCPROFILER_RCCL_API_ID_ncclCommAbort,         ROCPROFILER_RCCL_API_ID_ncclCommSplit,
};
constexpr int kNames = 64;
std::array<const char*, kNames> g_names{};
bool g_sees_kernels = false;

// ---- communicators ----

struct Comm {
    int slot = -1;
    std::uint64_t id = 0;
    std::uint32_t size = 0;
    int member = -1;
    std::uint64_t splits = 0;
    std::unordered_map<std::int64_t, int> directions;  // peer, and whether it is sent to -> slot
};

struct Comms {
    ForkMutex mutex;
    std::unordered_map<const void*, Comm> known;
};

Comms& comms() {
    static Comms& only = *new Comms;
    return only;
}

// The same number for the same bytes, in each process.
std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t start = 0xcbf29ce484222325u) {
    for (std::size_t i = 0; i < size; ++i)
        start = (start ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
    return start;
}

std::uint64_t digest_of(std::uint64_t id, std::int64_t first, std::int64_t second) {
    const std::int64_t more[] = {first, second};
    return digest(more, sizeof more, id);
}

std::string name_of(std::uint64_t id) {
    char name[16];
    std::snprintf(name, sizeof name, "comm %04x", static_cast<unsigned>(id & 0xffff));
    return name;
}

// A communicator that nobody else is in is of no use to those who look for who waits.
Comm made(std::uint64_t id, std::uint32_t size, int member) {
    Comm comm;
    comm.id = id;
    comm.size = size;
    comm.member = member;
    if (size > 1) comm.slot = rocpd_group(id, size, member, name_of(id).c_str());
    return comm;
}

Comm made(const Call& call) {
    const auto& args = call.args.ncclCommInitRank;
    return made(digest(&args.commId, sizeof args.commId), static_cast<std::uint32_t>(args.nranks), args.myrank);
}

// What a member sends to another one is a group of two, whose first member sends. A group that had no room at its first
// operation is not counted later either: both members would count from different ones.
int direction(Comm& comm, int peer, bool sends) {
    if (comm.slot < 0 || comm.member < 0) return -1;
    const auto [found, fresh] = comm.directions.try_emplace(std::int64_t{peer} * 2 + (sends ? 1 : 0), -1);
    if (fresh) {
        const int from = sends ? comm.member : peer, to = sends ? peer : comm.member;
        const std::string name = name_of(comm.id) + " " + std::to_string(from) + "->" + std::to_string(to);
        found->second = rocpd_group(digest_of(comm.id, from, to), 2, sends ? 0 : 1, name.c_str());
    }
    return found->second;
}

void leave(const void* of, bool aborted) {
    const std::lock_guard<ForkMutex> lock(comms().mutex);
    const auto found = comms().known.find(of);
    if (found == comms().known.end()) return;
    rocpd_group_close(found->second.slot, aborted ? 1 : 0);
    for (const auto& [peer, slot] : found->second.directions) rocpd_group_close(slot, aborted ? 1 : 0);
    comms().known.erase(found);
}

void keep(const void* as, Comm comm) {
    const std::lock_guard<ForkMutex> lock(comms().mutex);
    comms().known[as] = std::move(comm);
}

// A part of a communicator: all members split it, so that they count alike.
void keep_part(const Call& call) {
    const auto& args = call.args.ncclCommSplit;
    const std::lock_guard<ForkMutex> lock(comms().mutex);
    const auto found = comms().known.find(args.comm);
    if (found == comms().known.end()) return;
    const auto number = static_cast<std::int64_t>(++found->second.splits);
    if (args.newcomm == nullptr || *args.newcomm == nullptr || found->second.slot < 0) return;
    comms().known[*args.newcomm] = made(digest_of(found->second.id, number, args.color), ROCPD_SIZE_UNKNOWN, -1);
}

// ---- operations ----

struct Operation {
    int slot = -1;
    const char* name = "";
    std::uint64_t bytes = 0;
};

// What a thread is doing. Never freed: records of its work come later than it ends.
struct Caller {
    int calls = 0;   // calls of RCCL that it is in: those inside of others are RCCL's own
    int groups = 0;  // ncclGroupStart
    std::vector<Operation> waiting;  // for the end of the group
    std::shared_ptr<Batch> batch;
};
thread_local Caller* t_caller = nullptr;

Caller& caller() {
    if (t_caller == nullptr) t_caller = new Caller;
    return *t_caller;
}

std::uint64_t width(int datatype) {
    constexpr std::uint8_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return datatype >= 0 && datatype < static_cast<int>(sizeof kWidths) ? kWidths[datatype] : 1;
}

struct Exchange {
    const void* comm = nullptr;
    std::uint64_t count = 0;
    int datatype = 0;
    int peer = -1;
};

template <typename Arguments>
Exchange counted(const Arguments& args) {
    return {args.comm, args.count, static_cast<int>(args.datatype), -1};
}

Exchange exchange_of(rocprofiler_tracing_operation_t operation, const Call& call) {
    const auto& args = call.args;
    switch (operation) {
        case ROCPROFILER_RCCL_API_ID_ncclAllGather:
        case ROCPROFILER_RCCL_API_ID_ncclAllToAll:
            return {args.ncclAllGather.comm, args.ncclAllGather.sendcount,
                    static_cast<int>(args.ncclAllGather.datatype), -1};
        case ROCPROFILER_RCCL_API_ID_ncclAllToAllv:  // bytes of each pair lie in arrays of the program
            return {args.ncclAllToAllv.comm, 0, static_cast<int>(args.ncclAllToAllv.datatype), -1};
        case ROCPROFILER_RCCL_API_ID_ncclReduce: return counted(args.ncclReduce);
        case ROCPROFILER_RCCL_API_ID_ncclSend:
        case ROCPROFILER_RCCL_API_ID_ncclRecv:
            return {args.ncclSend.comm, args.ncclSend.count, static_cast<int>(args.ncclSend.datatype),
                    args.ncclSend.peer};
        case ROCPROFILER_RCCL_API_ID_ncclCommSplit: return {args.ncclCommSplit.comm, 0, 0, -1};
        default: return counted(args.ncclAllReduce);
    }
}

Operation operation_of(rocprofiler_tracing_operation_t operation, const Call& call) {
    const char* name = g_names[static_cast<std::size_t>(operation)];
    if (operation == ROCPROFILER_RCCL_API_ID_ncclCommInitRank ||
        operation == ROCPROFILER_RCCL_API_ID_ncclCommInitRankConfig)
        return {made(call).slot, name, 0};
    const Exchange exchange = exchange_of(operation, call);
    const std::lock_guard<ForkMutex> lock(comms().mutex);
    const auto found = comms().known.find(exchange.comm);
    if (found == comms().known.end()) return {-1, name, 0};
    Comm& comm = found->second;
    const bool sends = operation == ROCPROFILER_RCCL_API_ID_ncclSend;
    const int slot = exchange.peer >= 0 ? direction(comm, exchange.peer, sends) : comm.slot;
    return {slot, name, exchange.count * width(exchange.datatype)};
}

void begin(Caller& by, const std::vector<Operation>& operations) {
    by.batch = std::make_shared<Batch>();
    for (const Operation& each : operations) by.batch->enter(each.slot, each.name, each.bytes);
}

void enter(Caller& by, rocprofiler_tracing_operation_t operation, const Call& call) {
    switch (operation) {
        case ROCPROFILER_RCCL_API_ID_ncclGroupStart: by.groups += 1; return;
        case ROCPROFILER_RCCL_API_ID_ncclGroupEnd:
            if (by.groups != 1) return;
            begin(by, by.waiting);
            by.waiting.clear();
            return;
        case ROCPROFILER_RCCL_API_ID_ncclCommDestroy: return;
        case ROCPROFILER_RCCL_API_ID_ncclCommAbort: return leave(call.args.ncclCommDestroy.comm, true);
        default: break;
    }
    const Operation made_now = operation_of(operation, call);
    if (by.groups > 0)
        by.waiting.push_back(made_now);
    else
        begin(by, {made_now});
}

void exit(Caller& by, rocprofiler_tracing_operation_t operation, const Call& call) {
    switch (operation) {
        case ROCPROFILER_RCCL_API_ID_ncclGroupEnd:
            if (by.groups > 0) by.groups -= 1;
            break;
        case ROCPROFILER_RCCL_API_ID_ncclCommInitRank:
        case ROCPROFILER_RCCL_API_ID_ncclCommInitRankConfig:
            if (const auto* as = call.args.ncclCommInitRank.newcomm; as != nullptr && *as != nullptr)
                keep(*as, made(call));
            break;
        case ROCPROFILER_RCCL_API_ID_ncclCommSplit: keep_part(call); break;
        case ROCPROFILER_RCCL_API_ID_ncclCommDestroy: leave(call.args.ncclCommDestroy.comm, false); break;
        default: break;
    }
    if (by.batch == nullptr || by.groups > 0) return;
    by.batch->end();
    by.batch.reset();
}

void on_rccl(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t*, void*) {
    pass_forks();
    if (record.payload == nullptr || record.operation < 0 || record.operation >= kNames) return;
    Caller& by = caller();
    const auto& call = *static_cast<const Call*>(record.payload);
    if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER && by.calls++ == 0) {
        enter(by, record.operation, call);
        rocpd_call_begin(g_names[static_cast<std::size_t>(record.operation)], 0);
    } else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT && by.calls > 0 && --by.calls == 0) {
        rocpd_call_end();
        exit(by, record.operation, call);
    }
}

}  // namespace

void follow_collectives(rocprofiler_context_id_t context, bool sees_kernels) {
    g_sees_kernels = sees_kernels;
    const std::uint32_t records = record_kind("RCCL_API"), kind = callback_kind("RCCL_API");
    if (records == 0 || kind == 0) return;
    for (const rocprofiler_tracing_operation_t operation : kFollowed) {
        std::uint64_t size = 0;
        const char*& name = g_names[static_cast<std::size_t>(operation)];
        if (!good(g_sdk.query_buffer_tracing_kind_operation_name(
                static_cast<rocprofiler_buffer_tracing_kind_t>(records), operation, &name, &size)) || name == nullptr)
            name = "nccl call";
    }
    g_sdk.configure_callback_tracing_service(context, static_cast<rocprofiler_callback_tracing_kind_t>(kind), kFollowed,
                                             std::size(kFollowed), on_rccl, nullptr);
}

std::shared_ptr<Batch> launched_by_collective() {
    if (!g_sees_kernels || t_caller == nullptr || t_caller->calls == 0 || t_caller->batch == nullptr) return nullptr;
    t_caller->batch->launch();
    return t_caller->batch;
}

void end_of_work(const std::shared_ptr<Batch>& batch) {
    if (batch != nullptr) batch->end();
}

}  // namespace rocpd::client
