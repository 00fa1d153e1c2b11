// The stand-in's script: what an application does on a GPU, reported as the SDK reports it.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "standin_sdk.h"
#include "standin_world.h"

namespace {

using namespace standin;

thread_local std::vector<std::uint64_t> t_calls;  // correlation ids of the calls and ranges that are open

struct Entered {
    explicit Entered(std::uint64_t chosen) : id(chosen), parent(t_calls.empty() ? 0 : t_calls.back()) {
        t_calls.push_back(id);
    }
    ~Entered() { t_calls.pop_back(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    std::uint64_t id, parent;
};

// The number of a call, for which one that is traced takes a lock. In a forked child that is as it was in the parent.
std::uint64_t fresh() {
    if (!is_any_active()) return 0;
    take(world().numbering);
    if (world().in_numbering != nullptr) world().in_numbering();
    const std::uint64_t number = world().correlation.fetch_add(1);
    world().numbering.store(false);
    return number;
}

bool is_hip(rocprofiler_buffer_tracing_kind_t kind) {
    return kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT ||
           kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT;
}

// The kind as older SDKs know it, which have no arguments in their records.
rocprofiler_buffer_tracing_kind_t reported(rocprofiler_buffer_tracing_kind_t kind) {
    if (!world().ways.as_calls) return kind;
    if (kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT) return ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
    if (kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT) return ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API;
    return kind;
}

// Kinds of calls are numbered alike in requests, as far as they are asked for.
int request_kind(rocprofiler_buffer_tracing_kind_t kind) {
    if (kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT)
        return ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API;
    if (kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT)
        return ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_COMPILER_API;
    if (kind == ROCPROFILER_BUFFER_TRACING_RCCL_API) return ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API;
    return kind <= ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API ? static_cast<int>(kind) : 0;
}

// The record of a call that ends now, without its kind, operation and arguments.
HipCallRecord ended_call(const Entered& frame, rocprofiler_user_data_t external, std::uint64_t start) {
    HipCallRecord r{};
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external;
    r.correlation_id.ancestor = frame.parent;
    r.start_timestamp = start;
    r.end_timestamp = now();
    r.thread_id = tid();
    return r;
}

// A call of the application: callbacks for those that the client asked for, then a record. The work in it is done
// between making and ending it.
class Call {
public:
    Call(rocprofiler_buffer_tracing_kind_t kind, int operation, HipArguments arguments = {})
        : frame_(fresh()),
          kind_(kind),
          operation_(operation),
          external_(external_id(request_kind(kind), frame_.id)),
          data_{sizeof data_, arguments, 0},
          told_(kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT ? ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API
                                                                       : ROCPROFILER_CALLBACK_TRACING_NONE,
                operation, frame_.id, frame_.parent, &data_),
          start_(now()) {}
    ~Call() {
        told_.leave(&data_);
        HipCallRecord r = ended_call(frame_, external_, start_);
        r.kind = reported(kind_);
        r.operation = operation_;
        r.arguments = data_.arguments;
        put(r, is_hip(r.kind) ? sizeof r : offsetof(HipCallRecord, arguments));
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    const Entered& frame() const { return frame_; }
    std::uint64_t start() const { return start_; }

private:
    const Entered frame_;
    const rocprofiler_buffer_tracing_kind_t kind_;
    const int operation_;
    const rocprofiler_user_data_t external_;
    HipCallData data_;
    Told told_;
    const std::uint64_t start_;
};

template <typename T>
std::uint64_t as_word(T* pointer) {
    std::uint64_t word = 0;
    std::memcpy(&word, &pointer, sizeof pointer);
    return word;
}

// The calling thread works on this stream.
class OnStream {
public:
    explicit OnStream(std::uint64_t stream)
        : data_{sizeof data_, {stream_id(stream)}, {stream}},
          told_(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_SET, 0, 0, &data_) {}
    ~OnStream() { told_.leave(&data_); }
    OnStream(const OnStream&) = delete;
    OnStream& operator=(const OnStream&) = delete;

private:
    rocprofiler_callback_tracing_hip_stream_data_t data_;
    Told told_;
};

// As SDKs after 1.0 have it.
struct LongerDispatch {
    rocprofiler_buffer_tracing_kernel_dispatch_record_t record;
    std::int32_t pipe_id;
};

LongerDispatch dispatched(const Call& call, std::uint64_t queue, std::uint64_t kernel) {
    LongerDispatch longer{};
    rocprofiler_buffer_tracing_kernel_dispatch_record_t& r = longer.record;
    r.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH;
    r.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE;
    r.correlation_id.internal = call.frame().id;
    r.correlation_id.external = external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, call.frame().id);
    r.thread_id = tid();
    r.start_timestamp = call.start();
    r.end_timestamp = call.start() + 1000;
    r.dispatch_info.size = sizeof r.dispatch_info;
    r.dispatch_info.agent_id.handle = 9002;
    r.dispatch_info.queue_id.handle = queue;
    r.dispatch_info.kernel_id = kernel;
    r.dispatch_info.dispatch_id = world().dispatch.fetch_add(1);
    r.dispatch_info.workgroup_size = {64, 1, 1};
    r.dispatch_info.grid_size = {6400, 1, 1};
    count_dispatch(r.dispatch_info);
    r.size = world().ways.appended ? sizeof longer : sizeof r;
    return longer;
}

void put_dispatch(const LongerDispatch& longer) {
    put_bytes(longer.record.kind, longer.record.operation, &longer, longer.record.size);
}

void dispatch(const Call& call, std::uint64_t queue, std::uint64_t kernel) {
    put_dispatch(dispatched(call, queue, kernel));
}

void launch(std::uint64_t stream, std::uint64_t kernel, int kernels = 1) {
    const OnStream on(stream);
    const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipLaunchKernel, {{0x2012a0, stream}});
    for (int i = 0; i < kernels; ++i) dispatch(call, stream == 0 ? 16 : 17, kernel);
}

void copy(rocprofiler_memory_copy_operation_t operation) {
    const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipMemcpy, {{0x1000, 4096}});
    rocprofiler_buffer_tracing_memory_copy_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_COPY;
    r.operation = operation;
    r.correlation_id.internal = call.frame().id;
    r.correlation_id.external = external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY, call.frame().id);
    r.thread_id = tid();
    r.start_timestamp = call.start();
    r.end_timestamp = call.start() + 500;
    const bool up = operation == ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE;
    r.dst_agent_id.handle = up ? 9002 : 9000;
    r.src_agent_id.handle = up ? 9000 : 9002;
    r.bytes = 4096;
    r.dst_address.value = 0x1000;
    put(r);
}

void allocate(rocprofiler_memory_allocation_operation_t operation) {
    const Entered frame(fresh());
    const auto external = external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION, frame.id);
    rocprofiler_buffer_tracing_memory_allocation_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external;
    r.correlation_id.ancestor = frame.parent;
    r.thread_id = tid();
    r.start_timestamp = now();
    r.end_timestamp = now();
    const bool frees = operation == ROCPROFILER_MEMORY_ALLOCATION_FREE;
    r.agent_id.handle = frees ? 0 : 9002;  // the SDK does not know whose memory is freed
    r.address.value = 0x7f0000001000;
    r.allocation_size = frees ? 0 : 1 << 20;
    put(r);
}

void scratch() {
    const Entered frame(fresh());
    rocprofiler_buffer_tracing_scratch_memory_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY;
    r.operation = ROCPROFILER_SCRATCH_MEMORY_ALLOC;
    r.correlation_id.internal = frame.id;
    r.agent_id.handle = 9002;
    r.queue_id.handle = 17;
    r.thread_id = tid();
    r.start_timestamp = now();
    r.end_timestamp = now();
    r.flags = 1;
    r.allocation_size = 512;
    put(r);
}

// A record as words; the first two are filled in.
void put_words(int kind, std::vector<std::uint64_t> words) {
    constexpr int kOperation = kSomeCall;
    words[0] = words.size() * sizeof words[0];
    words[1] = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(kOperation) << 32;
    put_bytes(static_cast<std::uint32_t>(kind), kOperation, words.data(), words[0]);
}

void driver_events() {
    const std::uint64_t pid = static_cast<std::uint64_t>(getpid()), time = now(), gpu = 9002, cpu = 9000;
    put_words(ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE,
              {0, 0, time - 9, time, pid, 0x1000, 0x2000, cpu, gpu, gpu, cpu, 0});
    put_words(ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT, {0, 0, time - 8, time, pid, gpu, 0x1008});
    put_words(ROCPROFILER_BUFFER_TRACING_KFD_QUEUE, {0, 0, time - 7, time, pid, gpu});
    put_words(ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU, {0, 0, time, pid, gpu, 0x1000, 0x2000});
    put_words(ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS, {0, 0, time, pid | std::uint64_t{5} << 32});
}

// A graph of three kernels and a copy.
void launch_graph() {
    std::uint64_t payload[3] = {sizeof payload, 77, 0x9000};
    const auto callbacks = static_cast<rocprofiler_callback_tracing_kind_t>(kGraphCallbacks);
    const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kSomeCall);
    Told told(callbacks, kGraphLaunch, call.frame().id, call.frame().parent, payload);
    for (int i = 0; i < 3; ++i) dispatch(call, 16, 1);
    copy(ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
    told.leave(payload);
    put_words(kHipGraph, {0, 0, call.frame().id, 0, call.frame().parent, tid(), call.start(), now(), 9002, 16, 77, 3});
}

rocprofiler_callback_tracing_marker_api_data_t marker(const char* text) {
    rocprofiler_callback_tracing_marker_api_data_t data{};
    data.size = sizeof data;
    data.args.roctxMarkA.message = text;
    return data;
}

void call_twice(rocprofiler_callback_tracing_kind_t kind, int operation, const char* text) {
    auto data = marker(text);
    Told(kind, operation, fresh(), 0, &data).leave(&data);
}

rocprofiler_callback_tracing_kind_t marker_kind() {
    return world().ways.as_calls ? ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API
                                 : ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API;
}

// A range or mark, in either of the SDK's ways to report them: as what it is, or as the calls that it takes.
class Range {
public:
    Range(rocprofiler_marker_core_range_api_id_t what, std::uint64_t id, std::uint64_t parent, const char* text)
        : what_(what),
          id_(id),
          data_(marker(text)),
          told_(marker_kind(), world().ways.as_calls ? begin_call() : what, id, parent, &data_) {
        if (!world().ways.as_calls) return;
        data_.retval.roctx_range_id_t_retval = id;
        told_.leave(&data_);
        data_.args.roctxRangeStop.id = id;
    }
    void end() {
        if (!world().ways.as_calls)
            told_.leave(&data_);
        else if (what_ == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA)
            Told(marker_kind(), ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop, fresh(), 0, &data_).leave(&data_);
        else if (what_ == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA)
            Told(marker_kind(), ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop, fresh(), 0, &data_).leave(&data_);
    }
    bool is_known() const { return static_cast<bool>(told_); }

private:
    int begin_call() const {
        switch (what_) {
            case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA:
                return ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA;
            case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA:
                return ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA;
            default: return ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA;
        }
    }

    const rocprofiler_marker_core_range_api_id_t what_;
    const std::uint64_t id_;
    rocprofiler_callback_tracing_marker_api_data_t data_;
    Told told_;
};

// Ranges of the calling thread that the SDK knows: pushed while their service was active.
thread_local std::vector<Range> t_ranges;

// ---- RCCL ----

constexpr int kMembers = 64;

// How far each member is, seen by all.
struct Job {
    std::atomic<std::uint64_t> reduced[kMembers], sent[kMembers];
};

struct Communicator {
    Job* job = nullptr;
    int size = 0, member = 0;
    std::uint64_t address = 0;  // ncclComm_t
};

Communicator& communicator() {
    static Communicator only;
    return only;
}

Job* shared_job() {
    const int file = open(std::getenv("ROCPD_STANDIN_JOB"), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Job)) != 0) std::abort();
    void* at = mmap(nullptr, sizeof(Job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return static_cast<Job*>(at);
}

// A kernel that waits for the other members: where each of those has to be first.
struct Running {
    LongerDispatch record;
    std::atomic<std::uint64_t>* others;
    std::uint64_t number;
};
std::vector<Running> g_running;

ncclComm_t as_comm() {
    ncclComm_t comm = nullptr;
    std::memcpy(&comm, &communicator().address, sizeof comm);
    return comm;
}

// A call of RCCL: its callbacks and its record, which has no arguments.
class RcclCall {
public:
    explicit RcclCall(int operation, rocprofiler_rccl_api_args_t args = {})
        : frame_(fresh()),
          operation_(operation),
          external_(external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API, frame_.id)),
          data_{sizeof data_, args},
          told_(kRcclCallbacks, operation, frame_.id, frame_.parent, &data_),
          start_(now()) {}
    ~RcclCall() {
        told_.leave(&data_);
        HipCallRecord r = ended_call(frame_, external_, start_);
        r.kind = ROCPROFILER_BUFFER_TRACING_RCCL_API;
        r.operation = operation_;
        put(r, offsetof(HipCallRecord, arguments));
    }
    RcclCall(const RcclCall&) = delete;
    RcclCall& operator=(const RcclCall&) = delete;

private:
    const Entered frame_;
    const int operation_;
    const rocprofiler_user_data_t external_;
    rocprofiler_callback_tracing_rccl_api_data_t data_;
    Told told_;
    const std::uint64_t start_;
};

// The kernel of a call that is open: it runs until the others have come as far.
void run_with_others(std::atomic<std::uint64_t>* others) {
    const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipLaunchKernel, {{0x2012a0, kStream}});
    const std::uint64_t number = others[communicator().member].fetch_add(1) + 1;
    g_running.push_back({dispatched(call, 17, 2), others, number});
}

rocprofiler_rccl_api_args_t reduction() {
    rocprofiler_rccl_api_args_t args{};
    args.ncclAllReduce.count = 1024;
    args.ncclAllReduce.datatype = 7;  // ncclFloat32
    args.ncclAllReduce.comm = as_comm();
    return args;
}

rocprofiler_rccl_api_args_t exchange_with(int peer) {
    rocprofiler_rccl_api_args_t args{};
    args.ncclSend.count = 256;
    args.ncclSend.datatype = 7;
    args.ncclSend.peer = peer;
    args.ncclSend.comm = as_comm();
    return args;
}

// What happens in every tenth round.
void now_and_then() {
    scratch();
    for (const auto kind :
         {ROCPROFILER_BUFFER_TRACING_HSA_CORE_API, ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API,
          ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API, ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API,
          ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT, ROCPROFILER_BUFFER_TRACING_RCCL_API})
        Call(kind, kSomeCall);
    mark("mark");
    Range whole(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, fresh(), 0, "process range");
    std::thread([&] { whole.end(); }).join();
}

}  // namespace

namespace standin {

void push(const char* text) {
    const std::uint64_t id = fresh();
    const std::uint64_t parent = t_calls.empty() ? 0 : t_calls.back();
    Range range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, id, parent, text);
    if (!range.is_known()) return;
    t_calls.push_back(id);
    t_ranges.push_back(range);
}

void pop() {
    if (t_ranges.empty()) return;
    t_ranges.back().end();
    t_ranges.pop_back();
    t_calls.pop_back();
}

void mark(const char* text) {
    const std::uint64_t parent = t_calls.empty() ? 0 : t_calls.back();
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, fresh(), parent, text).end();
}

void work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
        push(("step " + std::to_string(round % 3)).c_str());
        allocate(ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
        copy(ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
        launch(0, 1);
        launch(kStream, 2);
        copy(ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
        allocate(ROCPROFILER_MEMORY_ALLOCATION_FREE);
        if (round % 10 == 0) now_and_then();
        pop();
    }
}

void rare() {
    driver_events();
    launch_graph();
    const std::uint64_t time = now(), id = fresh();
    put_words(kHipEvent, {0, 0, id, 0, tid(), time - 5, time, 9002, 16, 0xe0, 17});
    put_words(ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT, {0, 0, time, id});
    for (const int kind : {static_cast<int>(ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT),
                           static_cast<int>(ROCPROFILER_BUFFER_TRACING_ROCJPEG_API),
                           static_cast<int>(ROCPROFILER_BUFFER_TRACING_OMPT), kPlannedApi})
        Call(static_cast<rocprofiler_buffer_tracing_kind_t>(kind), kSomeCall);
}

void call() { Call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipInit); }

void load_module(const char* path) {
    Call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipModuleLoad, {{0x7000, as_word(path)}});
}

void get_name(char* name) {
    Call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipDeviceGetName, {{as_word(name), 256}});
}

void create_stream(std::uint64_t stream) {
    {
        const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipStreamCreate, {{as_word(&stream)}});
    }
    meet_stream(stream);
}

void meet_stream(std::uint64_t stream) {
    add_stream(stream);
    if (!is_traced(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_CREATE)) return;
    rocprofiler_callback_tracing_hip_stream_data_t data{sizeof data, {stream_id(stream)}, {stream}};
    Told(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_CREATE, 0, 0, &data);
}

void launch_on(std::uint64_t stream) { launch(stream, 2); }

void init_comm(int size, int member) {
    Communicator& comm = communicator();
    comm = {shared_job(), size, member, 0xc0ffee00};
    ncclComm_t made = nullptr;
    rocprofiler_rccl_api_args_t args{};
    args.ncclCommInitRank.newcomm = &made;
    args.ncclCommInitRank.nranks = size;
    std::strcpy(args.ncclCommInitRank.commId.internal, "the job's");
    args.ncclCommInitRank.myrank = member;
    const RcclCall call(ROCPROFILER_RCCL_API_ID_ncclCommInitRank, args);
    made = as_comm();
}

void destroy_comm() {
    rocprofiler_rccl_api_args_t args{};
    args.ncclCommDestroy.comm = as_comm();
    const RcclCall call(ROCPROFILER_RCCL_API_ID_ncclCommDestroy, args);
}

void all_reduce() {
    const RcclCall call(ROCPROFILER_RCCL_API_ID_ncclAllReduce, reduction());
    run_with_others(communicator().job->reduced);
}

void capture_all_reduce() { const RcclCall call(ROCPROFILER_RCCL_API_ID_ncclAllReduce, reduction()); }

void send_on() {
    const Communicator& comm = communicator();
    const int next = (comm.member + 1) % comm.size, before = (comm.member + comm.size - 1) % comm.size;
    { const RcclCall start(ROCPROFILER_RCCL_API_ID_ncclGroupStart); }
    { const RcclCall send(ROCPROFILER_RCCL_API_ID_ncclSend, exchange_with(next)); }
    { const RcclCall receive(ROCPROFILER_RCCL_API_ID_ncclRecv, exchange_with(before)); }
    const RcclCall end(ROCPROFILER_RCCL_API_ID_ncclGroupEnd);
    run_with_others(comm.job->sent);
}

void synchronize() {
    const Call call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, kHipStreamSynchronize, {{kStream}});
    for (Running& kernel : g_running) {
        for (int member = 0; member < communicator().size; ++member)
            while (kernel.others[member].load() < kernel.number) pause_for(1000);
        kernel.record.record.end_timestamp = now();
        put_dispatch(kernel.record);
    }
    g_running.clear();
}

void graph(int kernels) {
    push("graph");
    launch(kStream, 2, kernels);
    pop();
}

void leave_open() {
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, fresh(), 0, "open");
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, fresh(), 0, "open process range");
}

void name(int operation, const char* text) {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, operation, text);
}

void name_stream(const char* text, std::uint64_t stream) {
    auto data = marker(text);
    std::memcpy(&data.args.roctxNameHipStream.stream, &stream, sizeof stream);
    Told(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream, fresh(), 0,
         &data);
}

void pause() {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause,
               nullptr);
}

void resume() {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume,
               nullptr);
}

void interrupt_puts(void (*handler)()) { world().in_put = handler; }

void interrupt_numbering(void (*handler)()) { world().in_numbering = handler; }

}  // namespace standin
