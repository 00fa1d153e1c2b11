/* External correlation, agents, counters, threads.
 * Part of rocprofiler.h, which says what it is compared with. */
#ifndef ROCPD_ABI_QUERIES_H
#define ROCPD_ABI_QUERIES_H

/* ---- external correlation ---- */

typedef enum rocprofiler_external_correlation_id_request_kind_t {
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_NONE = 0,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_CORE_API = 1,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_AMD_EXT_API = 2,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_IMAGE_EXT_API = 3,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_FINALIZE_EXT_API = 4,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API = 5,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_COMPILER_API = 6,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY = 10,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH = 11,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API = 13,
    ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION = 15
} rocprofiler_external_correlation_id_request_kind_t;

typedef int (*rocprofiler_external_correlation_id_request_cb_t)(
    rocprofiler_thread_id_t thread, rocprofiler_context_id_t context,
    rocprofiler_external_correlation_id_request_kind_t kind, rocprofiler_tracing_operation_t operation,
    uint64_t internal, rocprofiler_user_data_t* external, void* data);

/* ---- agents ---- */

typedef enum rocprofiler_agent_type_t {
    ROCPROFILER_AGENT_TYPE_NONE = 0,
    ROCPROFILER_AGENT_TYPE_CPU = 1,
    ROCPROFILER_AGENT_TYPE_GPU = 2
} rocprofiler_agent_type_t;

typedef enum rocprofiler_agent_version_t {
    ROCPROFILER_AGENT_INFO_VERSION_NONE = 0,
    ROCPROFILER_AGENT_INFO_VERSION_0 = 1
} rocprofiler_agent_version_t;

typedef struct rocprofiler_agent_mem_bank_t {
    uint32_t heap_type; /* HSA_HEAPTYPE */
    uint32_t flags;     /* bit fields */
    uint32_t width, mem_clk_max;
    uint64_t size_in_bytes;
} rocprofiler_agent_mem_bank_t;

typedef struct rocprofiler_agent_cache_t {
    uint64_t processor_id_low, size;
    uint32_t level, cache_line_size, cache_lines_per_tag, association, latency;
    uint32_t type; /* bit fields */
} rocprofiler_agent_cache_t;

typedef struct rocprofiler_agent_io_link_t {
    uint32_t type; /* HSA_IOLINKTYPE */
    uint32_t version_major, version_minor, node_from, node_to, weight, min_latency, max_latency, min_bandwidth;
    uint32_t max_bandwidth, recommended_transfer_size;
    uint32_t flags; /* bit fields */
} rocprofiler_agent_io_link_t;

typedef struct rocprofiler_agent_v0_t {
    uint64_t size;
    rocprofiler_agent_id_t id;
    rocprofiler_agent_type_t type;
    uint32_t cpu_cores_count, simd_count, mem_banks_count, caches_count, io_links_count, cpu_core_id_base;
    uint32_t simd_id_base, max_waves_per_simd, lds_size_in_kb, gds_size_in_kb, num_gws, wave_front_size, num_xcc;
    uint32_t cu_count, array_count, num_shader_banks, simd_arrays_per_engine, cu_per_simd_array, simd_per_cu;
    uint32_t max_slots_scratch_cu, gfx_target_version;
    uint16_t vendor_id, device_id;
    uint32_t location_id, domain, drm_render_minor, num_sdma_engines, num_sdma_xgmi_engines;
    uint32_t num_sdma_queues_per_engine, num_cp_queues, max_engine_clk_ccompute, max_engine_clk_fcompute;
    uint32_t sdma_fw_version, fw_version, capability; /* bit fields */
    uint32_t cu_per_engine, max_waves_per_cu, family_id, workgroup_max_size, grid_max_size;
    uint64_t local_mem_size, hive_id, gpu_id;
    rocprofiler_dim3_t workgroup_max_dim, grid_max_dim;
    const rocprofiler_agent_mem_bank_t* mem_banks;
    const rocprofiler_agent_cache_t* caches;
    const rocprofiler_agent_io_link_t* io_links;
    const char* name;
    const char* vendor_name;
    const char* product_name;
    const char* model_name;
    uint32_t node_id;
    int32_t logical_node_id;
    int32_t logical_node_type_id;
    uint32_t runtime_visibility; /* bit fields */
    rocprofiler_uuid_t uuid;
} rocprofiler_agent_v0_t;

typedef rocprofiler_status_t (*rocprofiler_query_available_agents_cb_t)(rocprofiler_agent_version_t version,
                                                                        const void** agents, size_t count, void* data);

/* ---- counters ---- */

typedef enum rocprofiler_counter_info_version_id_t {
    ROCPROFILER_COUNTER_INFO_VERSION_NONE = 0,
    ROCPROFILER_COUNTER_INFO_VERSION_0 = 1
} rocprofiler_counter_info_version_id_t;

typedef struct rocprofiler_counter_info_v0_t {
    rocprofiler_counter_id_t id;
    const char* name;
    const char* description;
    const char* block;
    const char* expression;
    uint8_t is_constant : 1;
    uint8_t is_derived : 1;
} rocprofiler_counter_info_v0_t;

typedef struct rocprofiler_counter_record_t {
    rocprofiler_counter_instance_id_t id;
    double counter_value;
    rocprofiler_dispatch_id_t dispatch_id;
    rocprofiler_user_data_t user_data;
    rocprofiler_agent_id_t agent_id;
} rocprofiler_counter_record_t;

typedef struct rocprofiler_dispatch_counting_service_data_t {
    uint64_t size;
    rocprofiler_async_correlation_id_t correlation_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_dispatch_counting_service_data_t;

typedef rocprofiler_status_t (*rocprofiler_available_counters_cb_t)(rocprofiler_agent_id_t agent,
                                                                    rocprofiler_counter_id_t* counters, size_t count,
                                                                    void* data);
typedef void (*rocprofiler_dispatch_counting_service_cb_t)(rocprofiler_dispatch_counting_service_data_t dispatch,
                                                           rocprofiler_counter_config_id_t* config,
                                                           rocprofiler_user_data_t* user_data, void* data);
typedef void (*rocprofiler_dispatch_counting_record_cb_t)(rocprofiler_dispatch_counting_service_data_t dispatch,
                                                          rocprofiler_counter_record_t* records, size_t count,
                                                          rocprofiler_user_data_t user_data, void* data);

/* ---- threads ---- */

typedef enum rocprofiler_runtime_library_t {
    ROCPROFILER_LIBRARY = 1,
    ROCPROFILER_HSA_LIBRARY = 2,
    ROCPROFILER_HIP_LIBRARY = 4,
    ROCPROFILER_MARKER_LIBRARY = 8
} rocprofiler_runtime_library_t;

typedef void (*rocprofiler_internal_thread_library_cb_t)(rocprofiler_runtime_library_t library, void* data);

#endif
