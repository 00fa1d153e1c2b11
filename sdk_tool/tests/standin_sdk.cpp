// How the stand-in finds its client and lets it go, and the C functions of the SDK that the client looks up.
#include <dlfcn.h>
#include <signal.h>

#include "standin_sdk.h"
#include "standin_world.h"

#define STANDIN_API extern "C" __attribute__((visibility("default")))

using namespace standin;

namespace {

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
    Told(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_LOAD, 0, 0, &object);
    std::uint64_t id = 0;
    for (const char* name : {"_Z4gemmIfEvPT_S1_.kd", "reduce.kd"}) {
        rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t symbol{};
        symbol.size = sizeof symbol;
        symbol.kernel_id = ++id;
        symbol.code_object_id = 1;
        symbol.kernel_name = name;
        symbol.arch_vgpr_count = 32;
        Told(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER, 0, 0,
             &symbol);
    }
    for (std::uint64_t stream : {0, 1}) {
        rocprofiler_callback_tracing_hip_stream_data_t data{sizeof data, {stream}, {0x5000 + stream}};
        Told(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_CREATE, 0, 0, &data).leave(&data);
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
    return world().threads_are_quiet;
}

void finish() {
    if (world().client == nullptr || world().finished.exchange(true)) return;
    world().client->finalize(world().client->tool_data);
}

}  // namespace standin

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
    const auto blocked = [] {
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        return sigismember(&now, SIGTERM) == 1;
    };
    before(ROCPROFILER_LIBRARY, data);
    const bool meanwhile = blocked();  // a thread that is started now inherits this
    after(ROCPROFILER_LIBRARY, data);
    world().threads_are_quiet = meanwhile && !blocked();
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
    if (kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API && world().as_calls) return ROCPROFILER_STATUS_ERROR;
    world().callbacks[kind] = {context.handle, callback, data};
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_buffer_tracing_service(rocprofiler_context_id_t,
                                                                              rocprofiler_buffer_tracing_kind_t kind,
                                                                              const rocprofiler_tracing_operation_t*,
                                                                              std::size_t, rocprofiler_buffer_id_t id) {
    if (world().as_calls && (kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT ||
                             kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT))
        return ROCPROFILER_STATUS_ERROR;
    world().buffered[kind] = id.handle;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
    rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, const char** name,
    std::uint64_t*) {
    static const char* const names[] = {"hipInit", "hipLaunchKernel", "hipMemcpy", "some_call"};
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
STANDIN_API rocprofiler_status_t rocprofiler_push_external_correlation_id(rocprofiler_context_id_t context,
                                                                         rocprofiler_thread_id_t thread,
                                                                         rocprofiler_user_data_t value) {
    const std::lock_guard<std::mutex> lock(world().pushed_mutex);
    world().pushed[{context.handle, thread}].push_back(value.value);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_pop_external_correlation_id(rocprofiler_context_id_t context,
                                                                        rocprofiler_thread_id_t thread,
                                                                        rocprofiler_user_data_t* value) {
    const std::lock_guard<std::mutex> lock(world().pushed_mutex);
    auto& stack = world().pushed[{context.handle, thread}];
    if (stack.empty()) return ROCPROFILER_STATUS_ERROR;
    value->value = stack.back();
    stack.pop_back();
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
STANDIN_API rocprofiler_status_t rocprofiler_create_counter_config(rocprofiler_agent_id_t,
                                                                   rocprofiler_counter_id_t* counters,
                                                                   std::size_t count,
                                                                   rocprofiler_counter_config_id_t* id) {
    for (std::size_t i = 0; i < count; ++i) world().counters.push_back(counters[i].handle);
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
