#include "standin_sdk.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define STANDIN_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr rocprofiler_status_t kGood = ROCPROFILER_STATUS_SUCCESS;

struct Record {
    std::uint32_t kind;
    std::vector<std::uint64_t> bytes;
};

struct Buffer {
    std::uint64_t context;
    std::size_t watermark;
    rocprofiler_buffer_tracing_cb_t callback;
    void* data;
    std::mutex mutex;
    std::vector<Record> records;
    std::size_t used = 0;
};

struct Callback {
    std::uint64_t context;
    rocprofiler_callback_tracing_cb_t call;
    void* data;
};

// Never destroyed: threads play until the end.
struct World {
    std::mutex mutex;
    std::uint64_t contexts = 0;
    std::atomic<bool> active[8] = {};
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::map<int, Callback> callbacks;
    std::map<int, std::uint64_t> buffered;  // kind -> buffer
    std::set<int> requests;
    rocprofiler_external_correlation_id_request_cb_t request = nullptr;
    void* request_data = nullptr;
    rocprofiler_dispatch_counting_service_cb_t count_dispatch = nullptr;
    rocprofiler_dispatch_counting_record_cb_t count_record = nullptr;
    std::uint64_t count_context = 0;
    rocprofiler_tool_configure_result_t* client = nullptr;
    std::atomic<std::uint64_t> correlation{1};
    std::atomic<std::uint64_t> dispatch{1};
    std::atomic<bool> finished{false};
};

World& world() {
    static World& only = *new World;
    return only;
}

std::uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t tid() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

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

void tell(rocprofiler_callback_tracing_kind_t kind, int operation, rocprofiler_callback_phase_t phase,
          std::uint64_t id, std::uint64_t parent, void* payload) {
    const auto found = world().callbacks.find(kind);
    if (found == world().callbacks.end() || !world().active[found->second.context]) return;
    rocprofiler_callback_tracing_record_t record{};
    record.context_id.handle = found->second.context;
    record.thread_id = tid();
    record.correlation_id.internal = id;
    record.correlation_id.ancestor = parent;
    record.kind = kind;
    record.operation = operation;
    record.phase = phase;
    record.payload = payload;
    rocprofiler_user_data_t user{};
    found->second.call(record, &user, found->second.data);
}

void deliver(Buffer& buffer, std::vector<Record>& records) {
    std::vector<rocprofiler_record_header_t> headers(records.size());
    std::vector<rocprofiler_record_header_t*> pointers;
    for (std::size_t i = 0; i < records.size(); ++i) {
        headers[i].category = ROCPROFILER_BUFFER_CATEGORY_TRACING;
        headers[i].kind = records[i].kind;
        headers[i].payload = records[i].bytes.data();
        pointers.push_back(&headers[i]);
    }
    buffer.callback({buffer.context}, {0}, pointers.data(), pointers.size(), buffer.data, 0);
}

template <typename T>
void put(T& record) {
    const auto found = world().buffered.find(record.kind);
    if (found == world().buffered.end()) return;
    Buffer& buffer = *world().buffers[found->second];
    if (!world().active[buffer.context]) return;
    record.size = sizeof record;
    Record copy{static_cast<std::uint32_t>(record.kind), std::vector<std::uint64_t>((sizeof record + 7) / 8)};
    std::memcpy(copy.bytes.data(), &record, sizeof record);
    std::vector<Record> full;
    {
        const std::lock_guard<std::mutex> lock(buffer.mutex);
        buffer.records.push_back(std::move(copy));
        buffer.used += sizeof record;
        if (buffer.used >= buffer.watermark / 64) {  // small buffers: much going over
            full.swap(buffer.records);
            buffer.used = 0;
        }
    }
    if (!full.empty()) deliver(buffer, full);
}

rocprofiler_user_data_t external(rocprofiler_external_correlation_id_request_kind_t kind, std::uint64_t id) {
    rocprofiler_user_data_t value{};
    if (world().requests.count(kind) != 0)
        world().request(tid(), {1}, kind, 0, id, &value, world().request_data);
    return value;
}

void call(rocprofiler_buffer_tracing_kind_t kind, int operation, const Entered& frame, std::uint64_t start) {
    rocprofiler_buffer_tracing_hip_api_record_t r{};
    r.kind = kind;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.ancestor = frame.parent;
    r.start_timestamp = start;
    r.end_timestamp = now();
    r.thread_id = tid();
    put(r);
}

std::uint64_t fresh() { return world().correlation.fetch_add(1); }

void set_stream(std::uint64_t stream, rocprofiler_callback_phase_t phase) {
    rocprofiler_callback_tracing_hip_stream_data_t data{};
    data.size = sizeof data;
    data.stream_id.handle = stream;
    tell(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_SET, phase, 0, 0, &data);
}

void count(const rocprofiler_kernel_dispatch_info_t& info) {
    World& w = world();
    if (w.count_dispatch == nullptr || !w.active[w.count_context]) return;
    rocprofiler_dispatch_counting_service_data_t data{};
    data.dispatch_info = info;
    rocprofiler_counter_config_id_t config{};
    rocprofiler_user_data_t user{};
    w.count_dispatch(data, &config, &user, nullptr);
    if (config.handle == 0) return;
    // Two instances of each of two counters: the low byte is the counter, the rest the place.
    rocprofiler_counter_record_t records[4] = {};
    for (std::uint64_t i = 0; i < 4; ++i) {
        records[i].id = (i / 2 + 1) | (i % 2) << 8;
        records[i].counter_value = static_cast<double>(info.dispatch_id + i);
        records[i].dispatch_id = info.dispatch_id;
    }
    w.count_record(data, records, 4, user, nullptr);
}

void launch(std::uint64_t stream, std::uint64_t kernel) {
    set_stream(stream, ROCPROFILER_CALLBACK_PHASE_ENTER);
    const Entered frame(fresh());
    const std::uint64_t start = now();
    rocprofiler_buffer_tracing_kernel_dispatch_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH;
    r.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, frame.id);
    r.thread_id = tid();
    r.start_timestamp = start;
    r.end_timestamp = start + 1000;
    r.dispatch_info.size = sizeof r.dispatch_info;
    r.dispatch_info.agent_id.handle = 9002;
    r.dispatch_info.queue_id.handle = 16 + stream;
    r.dispatch_info.kernel_id = kernel;
    r.dispatch_info.dispatch_id = world().dispatch.fetch_add(1);
    r.dispatch_info.workgroup_size = {64, 1, 1};
    r.dispatch_info.grid_size = {6400, 1, 1};
    count(r.dispatch_info);
    put(r);
    call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, 1, frame, start);
    set_stream(stream, ROCPROFILER_CALLBACK_PHASE_EXIT);
}

void copy(rocprofiler_memory_copy_operation_t operation) {
    const Entered frame(fresh());
    const std::uint64_t start = now();
    rocprofiler_buffer_tracing_memory_copy_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_COPY;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY, frame.id);
    r.thread_id = tid();
    r.start_timestamp = start;
    r.end_timestamp = start + 500;
    const bool up = operation == ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE;
    r.dst_agent_id.handle = up ? 9002 : 9000;
    r.src_agent_id.handle = up ? 9000 : 9002;
    r.bytes = 4096;
    r.dst_address.value = 0x1000;
    put(r);
    call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, 2, frame, start);
}

void allocate(rocprofiler_memory_allocation_operation_t operation) {
    const Entered frame(fresh());
    rocprofiler_buffer_tracing_memory_allocation_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.ancestor = frame.parent;
    r.thread_id = tid();
    r.start_timestamp = now();
    r.end_timestamp = now();
    r.agent_id.handle = 9002;
    r.address.value = 0x7f0000001000;
    r.allocation_size = operation == ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE ? 1 << 20 : 0;
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

void plain_call(rocprofiler_buffer_tracing_kind_t kind) {
    const Entered frame(fresh());
    call(kind, 3, frame, now());
}

void range(rocprofiler_marker_core_range_api_id_t operation, rocprofiler_callback_phase_t phase, std::uint64_t id,
           std::uint64_t parent, const char* text) {
    rocprofiler_callback_tracing_marker_api_data_t data{};
    data.size = sizeof data;
    data.args.roctxMarkA.message = text;
    tell(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, operation, phase, id, parent, &data);
}

void control(int operation) {
    rocprofiler_callback_tracing_marker_api_data_t data{};
    for (const auto phase : {ROCPROFILER_CALLBACK_PHASE_ENTER, ROCPROFILER_CALLBACK_PHASE_EXIT})
        tell(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, operation, phase, fresh(), 0, &data);
}

void load_code() {
    rocprofiler_callback_tracing_code_object_load_data_t object{};
    object.size = sizeof object;
    object.code_object_id = 1;
    object.agent_id.handle = 9002;
    object.uri = "memory://1#offset=0x10&size=32";
    object.load_base = 4096;
    object.load_size = 8192;
    object.storage_type = ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY;
    object.memory_base = 16;
    object.memory_size = 32;
    tell(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_LOAD, ROCPROFILER_CALLBACK_PHASE_LOAD, 0, 0,
         &object);
    std::uint64_t id = 0;
    for (const char* name : {"_Z4gemmIfEvPT_S1_.kd", "reduce.kd"}) {
        rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t symbol{};
        symbol.size = sizeof symbol;
        symbol.kernel_id = ++id;
        symbol.code_object_id = 1;
        symbol.kernel_name = name;
        symbol.arch_vgpr_count = 32;
        tell(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER,
             ROCPROFILER_CALLBACK_PHASE_LOAD, 0, 0, &symbol);
    }
    for (std::uint64_t stream : {0, 1}) {
        rocprofiler_callback_tracing_hip_stream_data_t data{};
        data.stream_id.handle = stream;
        data.stream_value.value = 0x5000 + stream;
        tell(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_CREATE, ROCPROFILER_CALLBACK_PHASE_EXIT, 0,
             0, &data);
    }
}

}  // namespace

namespace standin {

bool start(std::uint32_t version) {
    using Configure = rocprofiler_tool_configure_result_t* (*)(std::uint32_t, const char*, std::uint32_t,
                                                               rocprofiler_client_id_t*);
    const auto configure = reinterpret_cast<Configure>(dlsym(RTLD_DEFAULT, "rocprofiler_configure"));
    if (configure == nullptr) return false;
    rocprofiler_client_id_t id{sizeof id, nullptr, 1};
    world().client = configure(version, "stand-in", 0, &id);
    if (world().client == nullptr || world().client->initialize(nullptr, world().client->tool_data) != 0) return false;
    load_code();
    return true;
}

void work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const std::string text = "step " + std::to_string(round % 3);
        const Entered step(fresh());
        range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, ROCPROFILER_CALLBACK_PHASE_ENTER, step.id,
              step.parent, text.c_str());
        allocate(ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
        copy(ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
        launch(0, 1);
        launch(1, 2);
        copy(ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
        allocate(ROCPROFILER_MEMORY_ALLOCATION_FREE);
        if (round % 10 == 0) {
            scratch();
            plain_call(ROCPROFILER_BUFFER_TRACING_HSA_CORE_API);
            plain_call(ROCPROFILER_BUFFER_TRACING_RCCL_API);
            const std::uint64_t mark = fresh();
            range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, ROCPROFILER_CALLBACK_PHASE_ENTER, mark, step.id,
                  "mark");
            range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, ROCPROFILER_CALLBACK_PHASE_EXIT, mark, step.id,
                  "mark");
            const std::uint64_t whole = fresh();
            range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, ROCPROFILER_CALLBACK_PHASE_ENTER, whole, 0,
                  "process range");
            range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, ROCPROFILER_CALLBACK_PHASE_EXIT, whole, 0,
                  "process range");
        }
        range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, ROCPROFILER_CALLBACK_PHASE_EXIT, step.id,
              step.parent, nullptr);
    }
}

void pause() { control(ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause); }
void resume() { control(ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume); }

void finish() {
    if (world().client == nullptr || world().finished.exchange(true)) return;
    world().client->finalize(world().client->tool_data);
}

}  // namespace standin

// ---- the functions that the client looks up ----

STANDIN_API rocprofiler_status_t rocprofiler_create_context(rocprofiler_context_id_t* context) {
    context->handle = ++world().contexts;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context) {
    world().active[context.handle] = true;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context) {
    world().active[context.handle] = false;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_create_buffer(rocprofiler_context_id_t context, std::size_t,
                                                           std::size_t watermark, rocprofiler_buffer_policy_t,
                                                           rocprofiler_buffer_tracing_cb_t callback, void* data,
                                                           rocprofiler_buffer_id_t* id) {
    auto buffer = std::make_unique<Buffer>();
    buffer->context = context.handle;
    buffer->watermark = watermark;
    buffer->callback = callback;
    buffer->data = data;
    id->handle = world().buffers.size();
    world().buffers.push_back(std::move(buffer));
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_create_callback_thread(rocprofiler_callback_thread_t* thread) {
    thread->handle = 1;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_assign_callback_thread(rocprofiler_buffer_id_t,
                                                                    rocprofiler_callback_thread_t) {
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_at_internal_thread_create(
    rocprofiler_internal_thread_library_cb_t before, rocprofiler_internal_thread_library_cb_t after, int, void* data) {
    before(ROCPROFILER_LIBRARY, data);
    after(ROCPROFILER_LIBRARY, data);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_flush_buffer(rocprofiler_buffer_id_t id) {
    Buffer& buffer = *world().buffers[id.handle];
    std::vector<Record> records;
    {
        const std::lock_guard<std::mutex> lock(buffer.mutex);
        records.swap(buffer.records);
        buffer.used = 0;
    }
    if (!records.empty()) deliver(buffer, records);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_callback_tracing_service(
    rocprofiler_context_id_t context, rocprofiler_callback_tracing_kind_t kind, const rocprofiler_tracing_operation_t*,
    std::size_t, rocprofiler_callback_tracing_cb_t callback, void* data) {
    world().callbacks[kind] = {context.handle, callback, data};
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_buffer_tracing_service(rocprofiler_context_id_t,
                                                                              rocprofiler_buffer_tracing_kind_t kind,
                                                                              const rocprofiler_tracing_operation_t*,
                                                                              std::size_t, rocprofiler_buffer_id_t id) {
    world().buffered[kind] = id.handle;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
    rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, const char** name,
    std::uint64_t*) {
    static const char* const names[] = {"hipInit", "hipLaunchKernel", "hipMemcpy", "hsa_or_rccl_call"};
    *name = names[operation];
    return kind == ROCPROFILER_BUFFER_TRACING_NONE ? ROCPROFILER_STATUS_ERROR : kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_buffer_tracing_record_args(
    rocprofiler_record_header_t header, rocprofiler_buffer_tracing_operation_args_cb_t callback, void* data) {
    const auto& r = *static_cast<const rocprofiler_buffer_tracing_hip_api_record_t*>(header.payload);
    callback(r.kind, r.operation, 0, nullptr, 1, "void*", "pointer", "0x1000", data);
    callback(r.kind, r.operation, 1, nullptr, 0, "size_t", "bytes", "4096", data);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_external_correlation_id_request_service(
    rocprofiler_context_id_t, const rocprofiler_external_correlation_id_request_kind_t* kinds, std::size_t count,
    rocprofiler_external_correlation_id_request_cb_t callback, void* data) {
    world().requests = {kinds, kinds + count};
    world().request = callback;
    world().request_data = data;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_available_agents(rocprofiler_agent_version_t version,
                                                                    rocprofiler_query_available_agents_cb_t callback,
                                                                    std::size_t, void* data) {
    rocprofiler_agent_v0_t cpu{};
    cpu.size = sizeof cpu;
    cpu.id.handle = 9000;
    cpu.type = ROCPROFILER_AGENT_TYPE_CPU;
    cpu.name = cpu.product_name = "AMD EPYC";
    cpu.vendor_name = "CPU";
    cpu.model_name = "";
    rocprofiler_agent_v0_t gpu = cpu;
    gpu.id.handle = 9002;
    gpu.type = ROCPROFILER_AGENT_TYPE_GPU;
    gpu.name = "gfx942";
    gpu.product_name = "AMD Instinct MI300X";
    gpu.vendor_name = "AMD";
    gpu.node_id = 2;
    gpu.logical_node_id = 1;
    gpu.cu_count = 304;
    const void* agents[] = {&cpu, &gpu};
    return callback(version, agents, 2, data);
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_agent_supported_counters(
    rocprofiler_agent_id_t agent, rocprofiler_available_counters_cb_t callback, void* data) {
    rocprofiler_counter_id_t counters[] = {{1}, {2}, {3}};
    return callback(agent, counters, 3, data);
}
STANDIN_API rocprofiler_status_t rocprofiler_query_counter_info(rocprofiler_counter_id_t id,
                                                                rocprofiler_counter_info_version_id_t, void* data) {
    static const char* const names[] = {"", "SQ_WAVES", "GRBM_COUNT", "TCC_HIT"};
    auto& info = *static_cast<rocprofiler_counter_info_v0_t*>(data);
    info = {};
    info.id = id;
    info.name = names[id.handle];
    info.description = "of the stand-in";
    info.block = "SQ";
    info.expression = "";
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_record_counter_id(rocprofiler_counter_instance_id_t id,
                                                                     rocprofiler_counter_id_t* counter) {
    counter->handle = id & 0xff;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_create_counter_config(rocprofiler_agent_id_t, rocprofiler_counter_id_t*,
                                                                   std::size_t, rocprofiler_counter_config_id_t* id) {
    id->handle = 1;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_callback_dispatch_counting_service(
    rocprofiler_context_id_t context, rocprofiler_dispatch_counting_service_cb_t dispatch, void*,
    rocprofiler_dispatch_counting_record_cb_t record, void*) {
    world().count_context = context.handle;
    world().count_dispatch = dispatch;
    world().count_record = record;
    return kGood;
}
