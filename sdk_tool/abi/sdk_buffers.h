/* Buffers and the records in them.
 * Part of rocprofiler.h, which says what it is compared with. */
#ifndef ROCPD_ABI_BUFFERS_H
#define ROCPD_ABI_BUFFERS_H

typedef enum rocprofiler_buffer_category_t {
    ROCPROFILER_BUFFER_CATEGORY_NONE = 0,
    ROCPROFILER_BUFFER_CATEGORY_TRACING = 1
} rocprofiler_buffer_category_t;

typedef enum rocprofiler_buffer_policy_t {
    ROCPROFILER_BUFFER_POLICY_NONE = 0,
    ROCPROFILER_BUFFER_POLICY_DISCARD = 1,
    ROCPROFILER_BUFFER_POLICY_LOSSLESS = 2
} rocprofiler_buffer_policy_t;

typedef enum rocprofiler_buffer_tracing_kind_t {
    ROCPROFILER_BUFFER_TRACING_NONE = 0,
    ROCPROFILER_BUFFER_TRACING_HSA_CORE_API = 1,
    ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API = 2,
    ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API = 3,
    ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API = 4,
    ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API = 5,
    ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API = 6,
    ROCPROFILER_BUFFER_TRACING_MEMORY_COPY = 10,
    ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH = 11,
    ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY = 12,
    ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT = 13,
    ROCPROFILER_BUFFER_TRACING_RCCL_API = 14,
    ROCPROFILER_BUFFER_TRACING_OMPT = 15,
    ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION = 16,
    ROCPROFILER_BUFFER_TRACING_ROCDECODE_API = 18,
    ROCPROFILER_BUFFER_TRACING_ROCJPEG_API = 19,
    ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT = 21,
    ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT = 22,
    ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT = 23,
    ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU = 27,
    ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS = 28,
    ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE = 29,
    ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT = 30,
    ROCPROFILER_BUFFER_TRACING_KFD_QUEUE = 31,
    ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API = 32
    /* Kinds of later versions are known by their names alone. */
} rocprofiler_buffer_tracing_kind_t;

typedef int (*rocprofiler_buffer_tracing_kind_cb_t)(rocprofiler_buffer_tracing_kind_t kind, void* data);
typedef int (*rocprofiler_buffer_tracing_kind_operation_cb_t)(rocprofiler_buffer_tracing_kind_t kind,
                                                              rocprofiler_tracing_operation_t operation, void* data);

typedef struct rocprofiler_record_header_t {
    __extension__ union {
        __extension__ struct {
            uint32_t category;
            uint32_t kind;
        };
        uint64_t hash;
    };
    void* payload;
} rocprofiler_record_header_t;

typedef void (*rocprofiler_buffer_tracing_cb_t)(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
                                                rocprofiler_record_header_t** headers, size_t count, void* data,
                                                uint64_t drop_count);

/* The beginning that HSA, HIP (plain and _EXT) and RCCL records share. */
typedef struct rocprofiler_buffer_tracing_hip_api_record_t {
    uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_tracing_operation_t operation;
    rocprofiler_correlation_id_t correlation_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_hip_api_record_t;

typedef enum rocprofiler_kernel_dispatch_operation_t {
    ROCPROFILER_KERNEL_DISPATCH_NONE = 0,
    ROCPROFILER_KERNEL_DISPATCH_ENQUEUE = 1,
    ROCPROFILER_KERNEL_DISPATCH_COMPLETE = 2
} rocprofiler_kernel_dispatch_operation_t;

typedef struct rocprofiler_kernel_dispatch_info_t {
    uint64_t size;
    rocprofiler_agent_id_t agent_id;
    rocprofiler_queue_id_t queue_id;
    rocprofiler_kernel_id_t kernel_id;
    rocprofiler_dispatch_id_t dispatch_id;
    uint32_t private_segment_size;
    uint32_t group_segment_size;
    rocprofiler_dim3_t workgroup_size;
    rocprofiler_dim3_t grid_size;
    uint8_t reserved_padding[56];
} rocprofiler_kernel_dispatch_info_t;

typedef struct rocprofiler_buffer_tracing_kernel_dispatch_record_t {
    uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_kernel_dispatch_operation_t operation;
    rocprofiler_async_correlation_id_t correlation_id;
    rocprofiler_thread_id_t thread_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_buffer_tracing_kernel_dispatch_record_t;

typedef enum rocprofiler_memory_copy_operation_t {
    ROCPROFILER_MEMORY_COPY_NONE = 0,
    ROCPROFILER_MEMORY_COPY_HOST_TO_HOST = 1,
    ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE = 2,
    ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST = 3,
    ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE = 4
} rocprofiler_memory_copy_operation_t;

typedef struct rocprofiler_buffer_tracing_memory_copy_record_t {
    uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_memory_copy_operation_t operation;
    rocprofiler_async_correlation_id_t correlation_id;
    rocprofiler_thread_id_t thread_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    rocprofiler_agent_id_t dst_agent_id;
    rocprofiler_agent_id_t src_agent_id;
    uint64_t bytes;
    rocprofiler_address_t dst_address; /* these two since 1.0: `size` tells */
    rocprofiler_address_t src_address;
} rocprofiler_buffer_tracing_memory_copy_record_t;

typedef enum rocprofiler_memory_allocation_operation_t {
    ROCPROFILER_MEMORY_ALLOCATION_NONE = 0,
    ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE = 1,
    ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE = 2,
    ROCPROFILER_MEMORY_ALLOCATION_FREE = 3,
    ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE = 4
} rocprofiler_memory_allocation_operation_t;

typedef struct rocprofiler_buffer_tracing_memory_allocation_record_t {
    uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_memory_allocation_operation_t operation;
    rocprofiler_correlation_id_t correlation_id;
    rocprofiler_thread_id_t thread_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    rocprofiler_agent_id_t agent_id;
    rocprofiler_address_t address;
    uint64_t allocation_size;
} rocprofiler_buffer_tracing_memory_allocation_record_t;

typedef enum rocprofiler_scratch_memory_operation_t {
    ROCPROFILER_SCRATCH_MEMORY_NONE = 0,
    ROCPROFILER_SCRATCH_MEMORY_ALLOC = 1,
    ROCPROFILER_SCRATCH_MEMORY_FREE = 2,
    ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM = 3
} rocprofiler_scratch_memory_operation_t;

typedef struct rocprofiler_buffer_tracing_scratch_memory_record_t {
    uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_scratch_memory_operation_t operation;
    rocprofiler_correlation_id_t correlation_id;
    rocprofiler_agent_id_t agent_id;
    rocprofiler_queue_id_t queue_id;
    rocprofiler_thread_id_t thread_id;
    rocprofiler_timestamp_t start_timestamp;
    rocprofiler_timestamp_t end_timestamp;
    uint32_t flags;
    uint64_t allocation_size;
} rocprofiler_buffer_tracing_scratch_memory_record_t;

typedef int (*rocprofiler_buffer_tracing_operation_args_cb_t)(rocprofiler_buffer_tracing_kind_t kind,
                                                              rocprofiler_tracing_operation_t operation,
                                                              uint32_t number, const void* const address,
                                                              int32_t indirections, const char* type,
                                                              const char* name, const char* value, void* data);

#endif
