// How the stand-in finds its client and lets it go, and the C functions of the SDK that the client looks up.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>

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
    meet_stream(kStream);
}

// A client may ask for some operations of a kind only.
Operations chosen(const rocprofiler_tracing_operation_t* operations, std::size_t count) {
    return operations != nullptr ? Operations(operations, operations + count) : Operations();
}

const char* const kFunctions[kHipCalls] = {"hipInit",          "hipLaunchKernel",     "hipMemcpy",
                                           "some_call",        "hipModuleLoad",       "hipStreamCreate",
                                           "hipDeviceGetName", "hipStreamSynchronize"};

const std::map<int, const char*> kRcclFunctions = {
    {kSomeCall, "some_call"},
    {ROCPROFILER_RCCL_API_ID_ncclAllReduce, "ncclAllReduce"},
    {ROCPROFILER_RCCL_API_ID_ncclSend, "ncclSend"},
    {ROCPROFILER_RCCL_API_ID_ncclRecv, "ncclRecv"},
    {ROCPROFILER_RCCL_API_ID_ncclGroupStart, "ncclGroupStart"},
    {ROCPROFILER_RCCL_API_ID_ncclGroupEnd, "ncclGroupEnd"},
    {ROCPROFILER_RCCL_API_ID_ncclCommInitRank, "ncclCommInitRank"},
    {ROCPROFILER_RCCL_API_ID_ncclCommDestroy, "ncclCommDestroy"},
    {ROCPROFILER_RCCL_API_ID_ncclCommAbort, "ncclCommAbort"},
};

const char* const kKinds[kLastKind] = {
    nullptr, "HSA_CORE_API", "HSA_AMD_EXT_API", "HSA_IMAGE_EXT_API", "HSA_FINALIZE_EXT_API", "HIP_RUNTIME_API",
    "HIP_COMPILER_API", "MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API", "MEMORY_COPY", "KERNEL_DISPATCH",
    "SCRATCH_MEMORY", "CORRELATION_ID_RETIREMENT", "RCCL_API", "OMPT", "MEMORY_ALLOCATION", "RUNTIME_INITIALIZATION",
    "ROCDECODE_API", "ROCJPEG_API", "HIP_STREAM", "HIP_RUNTIME_API_EXT", "HIP_COMPILER_API_EXT", "ROCDECODE_API_EXT",
    "KFD_EVENT_PAGE_MIGRATE", "KFD_EVENT_PAGE_FAULT", "KFD_EVENT_QUEUE", "KFD_EVENT_UNMAP_FROM_GPU",
    "KFD_EVENT_DROPPED_EVENTS", "KFD_PAGE_MIGRATE", "KFD_PAGE_FAULT", "KFD_QUEUE", "MARKER_CORE_RANGE_API", "HIP_GRAPH",
    "ROCSHMEM_API", "ROCSHMEM_API_EXT", "HIPFILE_API", "HIPFILE_API_EXT", "PLANNED_API", "HIP_EVENT"};

const std::map<int, const char*> kCallbackKinds = {
    {ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, "HIP_RUNTIME_API"},
    {ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API, "HIP_COMPILER_API"},
    {ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, "MARKER_CORE_API"},
    {ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, "MARKER_CONTROL_API"},
    {ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, "MARKER_NAME_API"},
    {ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, "CODE_OBJECT"},
    {kRcclCallbacks, "RCCL_API"},
    {ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, "HIP_STREAM"},
    {ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, "MARKER_CORE_RANGE_API"},
    {kGraphCallbacks, "HIP_GRAPH"},
};

// Older SDKs report calls without arguments, and ranges by their calls.
bool is_older(int kind) {
    return kind != ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT &&
           kind != ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT &&
           kind != ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API;
}

bool has_kind(int kind) {
    const int last =
        world().ways.later ? kLastKind : static_cast<int>(ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API) + 1;
    return kind > ROCPROFILER_BUFFER_TRACING_NONE && kind < last && (!world().ways.as_calls || is_older(kind));
}

// One argument of a HIP call, as text. Strings are read now, whenever now is.
struct Argument {
    const char* type;
    const char* name;
    bool is_string;
};

std::vector<Argument> arguments_of(int operation) {
    switch (operation) {
        case kHipLaunchKernel: return {{"PKv", "function_address", false}, {"P12ihipStream_t", "stream", false}};
        case kHipMemcpy: return {{"Pv", "pointer", false}, {"m", "bytes", false}};
        case kHipModuleLoad: return {{"PP12ihipModule_t", "module", false}, {"PKc", "fname", true}};
        case kHipStreamCreate: return {{"PP12ihipStream_t", "stream", false}};
        case kHipDeviceGetName: return {{"Pc", "name", true}, {"i", "len", false}};
        default: return {};
    }
}

std::string as_text(const Argument& argument, std::uint64_t word) {
    if (argument.is_string) {
        const char* text = nullptr;
        std::memcpy(&text, &word, sizeof text);
        return text == nullptr ? "(null)" : text;
    }
    char text[32];
    std::snprintf(text, sizeof text, argument.type[0] == 'P' ? "0x%lx" : "%lu", static_cast<unsigned long>(word));
    return text;
}

}  // namespace

namespace standin {

void behave(const Ways& ways) { world().ways = ways; }

bool start(std::uint32_t version) {
    using Configure = rocprofiler_tool_configure_result_t* (*)(std::uint32_t, const char*, std::uint32_t,
                                                               rocprofiler_client_id_t*);
    const auto configure = reinterpret_cast<Configure>(dlsym(RTLD_DEFAULT, "rocprofiler_configure"));
    if (configure == nullptr) return false;
    rocprofiler_client_id_t id{sizeof id, nullptr, 1};
    world().client = configure(version, "stand-in", 0, &id);
    pthread_atfork(nullptr, nullptr, serve_in_child);
    std::atexit(finish);
    if (world().client == nullptr || world().client->initialize(nullptr, world().client->tool_data) != 0) return false;
    world().locked = true;
    load_code();
    return world().threads_are_quiet;
}

void finish() {
    if (world().client == nullptr || world().finished.exchange(true)) return;
    take(world().numbering);  // to look for calls that have not ended
    world().numbering.store(false);
    world().client->finalize(world().client->tool_data);
}

std::uint64_t longest_wait() { return world().longest_put.load(); }

std::uint64_t largest_delivery() { return world().largest_delivery.load(); }

}  // namespace standin

// For a program that finds nothing else of this library.
STANDIN_API int standin_play() {
    if (!start()) return 1;
    work(1);
    finish();
    return 7;
}

// Of the SDK's roctx, which the stand-in is too.
STANDIN_API int roctxMarkA(const char* text) {
    mark(text);
    return 0;
}

STANDIN_API rocprofiler_status_t rocprofiler_create_context(rocprofiler_context_id_t* context) {
    if (world().locked) return ROCPROFILER_STATUS_ERROR;
    context->handle = ++world().contexts;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context) {
    if (world().ways.other_counts && context.handle == world().count_context)
        return ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
    world().active[context.handle] = true;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context) {
    world().active[context.handle] = false;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_create_buffer(rocprofiler_context_id_t context, std::size_t size,
                                                           std::size_t watermark, rocprofiler_buffer_policy_t,
                                                           rocprofiler_buffer_tracing_cb_t callback, void* data,
                                                           rocprofiler_buffer_id_t* id) {
    if (world().locked) return ROCPROFILER_STATUS_ERROR;
    auto buffer = std::make_unique<Buffer>();
    buffer->context = context.handle;
    buffer->size = size;
    buffer->watermark = watermark;
    buffer->callback = callback;
    buffer->data = data;
    serve(*buffer);
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
    flush(*world().buffers[id.handle], true);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_callback_tracing_service(
    rocprofiler_context_id_t context, rocprofiler_callback_tracing_kind_t kind,
    const rocprofiler_tracing_operation_t* operations, std::size_t count, rocprofiler_callback_tracing_cb_t callback,
    void* data) {
    if (kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API && world().ways.as_calls)
        return ROCPROFILER_STATUS_ERROR;
    if (world().locked) return ROCPROFILER_STATUS_ERROR;
    const auto [service, fresh] =
        world().callbacks.try_emplace(kind, Callback{context.handle, callback, data, chosen(operations, count)});
    // Other contexts may have it too; only the first is called here.
    return fresh || service->second.context != context.handle ? kGood : ROCPROFILER_STATUS_ERROR;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_buffer_tracing_service(
    rocprofiler_context_id_t context, rocprofiler_buffer_tracing_kind_t kind,
    const rocprofiler_tracing_operation_t* operations, std::size_t count, rocprofiler_buffer_id_t id) {
    if (world().locked) return ROCPROFILER_STATUS_ERROR;
    if (!has_kind(static_cast<int>(kind))) return ROCPROFILER_STATUS_ERROR;
    world().buffered[kind].push_back({context.handle, id.handle, chosen(operations, count)});
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_name(rocprofiler_buffer_tracing_kind_t kind,
                                                                            const char** name, std::uint64_t* size) {
    const int number = static_cast<int>(kind);
    if (!has_kind(number)) return ROCPROFILER_STATUS_ERROR;
    if (name != nullptr) *name = kKinds[number];
    if (size != nullptr) *size = std::strlen(kKinds[number]);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_buffer_tracing_kinds(
    rocprofiler_buffer_tracing_kind_cb_t callback, void* data) {
    for (int kind = 1; kind < kLastKind; ++kind)
        if (has_kind(kind) && callback(static_cast<rocprofiler_buffer_tracing_kind_t>(kind), data) != 0) break;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_callback_tracing_kind_name(rocprofiler_callback_tracing_kind_t kind,
                                                                              const char** name, std::uint64_t* size) {
    const auto found = kCallbackKinds.find(kind);
    if (found == kCallbackKinds.end()) return ROCPROFILER_STATUS_ERROR;
    if (name != nullptr) *name = found->second;
    if (size != nullptr) *size = std::strlen(found->second);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_callback_tracing_kinds(
    rocprofiler_callback_tracing_kind_cb_t callback, void* data) {
    for (const auto& [kind, name] : kCallbackKinds)
        if (callback(static_cast<rocprofiler_callback_tracing_kind_t>(kind), data) != 0) break;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_buffer_tracing_kind_operations(
    rocprofiler_buffer_tracing_kind_t kind, rocprofiler_buffer_tracing_kind_operation_cb_t callback, void* data) {
    for (int operation = 0; operation < kHipCalls; ++operation)
        if (callback(kind, operation, data) != 0) break;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
    rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, const char** name,
    std::uint64_t*) {
    if (kind == ROCPROFILER_BUFFER_TRACING_RCCL_API) {
        const auto found = kRcclFunctions.find(operation);
        if (found == kRcclFunctions.end()) return ROCPROFILER_STATUS_ERROR;
        *name = found->second;
        return kGood;
    }
    if (operation < 0 || operation >= kHipCalls) return ROCPROFILER_STATUS_ERROR;
    *name = kFunctions[operation];
    return kind == ROCPROFILER_BUFFER_TRACING_NONE ? ROCPROFILER_STATUS_ERROR : kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_buffer_tracing_record_args(
    rocprofiler_record_header_t header, rocprofiler_buffer_tracing_operation_args_cb_t callback, void* data) {
    if (header.kind != ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT) return kGood;
    const auto& r = *static_cast<const HipCallRecord*>(header.payload);
    const HipArguments copy = r.arguments;  // whose addresses the client gets
    std::uint32_t number = 0;
    for (const Argument& argument : arguments_of(r.operation)) {
        const std::uint64_t* word = &copy.word[number];
        callback(r.kind, r.operation, number++, word, 0, argument.type, argument.name,
                 as_text(argument, *word).c_str(), data);
    }
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_configure_external_correlation_id_request_service(
    rocprofiler_context_id_t context, const rocprofiler_external_correlation_id_request_kind_t* kinds,
    std::size_t count, rocprofiler_external_correlation_id_request_cb_t callback, void* data) {
    world().requests = kinds != nullptr ? std::set<int>(kinds, kinds + count) : std::set<int>();  // none: all
    world().request_contexts.insert(context.handle);
    world().request = callback;
    world().request_data = data;
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_push_external_correlation_id(rocprofiler_context_id_t,
                                                                         rocprofiler_thread_id_t thread,
                                                                         rocprofiler_user_data_t value) {
    const std::lock_guard<std::mutex> lock(world().pushed_mutex);
    world().pushed[thread].push_back(value.value);
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_pop_external_correlation_id(rocprofiler_context_id_t,
                                                                        rocprofiler_thread_id_t thread,
                                                                        rocprofiler_user_data_t* value) {
    const std::lock_guard<std::mutex> lock(world().pushed_mutex);
    auto& stack = world().pushed[thread];
    if (stack.empty()) return ROCPROFILER_STATUS_ERROR;
    value->value = stack.back();
    stack.pop_back();
    return kGood;
}
STANDIN_API rocprofiler_status_t rocprofiler_query_available_agents(rocprofiler_agent_version_t version,
                                                                    rocprofiler_query_available_agents_cb_t callback,
                                                                    std::size_t size, void* data) {
    struct Larger {
        rocprofiler_agent_v0_t known;
        std::uint64_t later;
    };
    const Ways& ways = world().ways;
    std::size_t own = sizeof(rocprofiler_agent_v0_t);
    if (ways.small_agents) own = offsetof(rocprofiler_agent_v0_t, runtime_visibility);
    if (ways.large_agents) own = sizeof(Larger);
    if (size > own || ways.no_agents) return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
    static const rocprofiler_agent_mem_bank_t memory{1, 0, 8192, 1300, 206141652992};
    static const rocprofiler_agent_cache_t caches[] = {{7, 32, 1, 128, 0, 0, 0, 9}, {8, 4096, 2, 128, 0, 16, 0, 9}};
    static const rocprofiler_agent_io_link_t link{2, 0, 0, 2, 0, 20, 0, 0, 0, 0, 0, 1};
    // One after the other in memory that is no larger than it has to be.
    std::vector<Larger> space(3);
    rocprofiler_agent_v0_t& cpu = space[0].known;
    cpu.size = own;
    cpu.id.handle = 9000;
    cpu.type = ROCPROFILER_AGENT_TYPE_CPU;
    cpu.name = cpu.product_name = "AMD EPYC";
    cpu.vendor_name = "CPU";
    cpu.model_name = "";
    for (std::uint32_t number : {0u, 1u}) {
        rocprofiler_agent_v0_t& gpu = space[number + 1].known;
        gpu = cpu;
        gpu.id.handle = 9002 + number;
        gpu.type = ROCPROFILER_AGENT_TYPE_GPU;
        gpu.name = "gfx942";
        gpu.product_name = "AMD Instinct MI300X";
        gpu.vendor_name = "AMD";
        gpu.node_id = 2 + number;
        gpu.logical_node_id = static_cast<std::int32_t>(1 + number);
        gpu.logical_node_type_id = static_cast<std::int32_t>(number);
        gpu.cu_count = 304;
        gpu.device_id = 29857;
        gpu.gpu_id = 9845 + number;
        gpu.fw_version = 185 | 3u << 10;
        gpu.mem_banks_count = gpu.io_links_count = 1;
        gpu.caches_count = 2;
        gpu.mem_banks = &memory;
        gpu.caches = caches;
        gpu.io_links = &link;
        if (!ways.small_agents) {
            gpu.runtime_visibility = 15;
            gpu.uuid.bytes[0] = 134;
        }
    }
    const void* agents[] = {&space[0], &space[1], &space[2]};
    return callback(version, agents, 3, data);
}
STANDIN_API rocprofiler_status_t rocprofiler_iterate_agent_supported_counters(
    rocprofiler_agent_id_t agent, rocprofiler_available_counters_cb_t callback, void* data) {
    rocprofiler_counter_id_t counters[] = {{1}, {2}, {3}};  // the same for all agents of an architecture
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
STANDIN_API rocprofiler_status_t rocprofiler_create_counter_config(rocprofiler_agent_id_t agent,
                                                                   rocprofiler_counter_id_t* counters,
                                                                   std::size_t count,
                                                                   rocprofiler_counter_config_id_t* id) {
    world().counters.clear();
    for (std::size_t i = 0; i < count; ++i) world().counters.push_back(counters[i].handle);
    id->handle = agent.handle;
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
