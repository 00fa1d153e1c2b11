/* Handles, numbers, and how the SDK finds its clients.
 * Part of rocprofiler.h, which says what it is compared with. */
#ifndef ROCPD_ABI_TYPES_H
#define ROCPD_ABI_TYPES_H

#ifndef ROCPD_ABI_IN_NAMESPACE
#include <stddef.h>
#include <stdint.h>
#endif

/* ---- plain types ---- */

typedef uint64_t rocprofiler_timestamp_t; /* [ns], CLOCK_BOOTTIME */
typedef uint64_t rocprofiler_thread_id_t;
typedef int32_t rocprofiler_tracing_operation_t;
typedef uint64_t rocprofiler_kernel_id_t;
typedef uint64_t rocprofiler_dispatch_id_t;
typedef uint64_t rocprofiler_counter_instance_id_t;

typedef enum rocprofiler_status_t {
    ROCPROFILER_STATUS_SUCCESS = 0,
    ROCPROFILER_STATUS_ERROR = 1,
    ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT = 12,
    ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI = 18
} rocprofiler_status_t;

typedef union rocprofiler_user_data_t {
    uint64_t value;
    void* ptr;
} rocprofiler_user_data_t;

typedef union rocprofiler_address_t {
    uint64_t handle;
    uint64_t value;
    const void* ptr;
} rocprofiler_address_t;

typedef struct rocprofiler_uuid_t {
    uint8_t bytes[16];
} rocprofiler_uuid_t;

typedef struct rocprofiler_dim3_t {
    uint32_t x, y, z;
} rocprofiler_dim3_t;

#define ROCPD_ABI_HANDLE(NAME) \
    typedef struct NAME { \
        uint64_t handle; \
    } NAME
ROCPD_ABI_HANDLE(rocprofiler_context_id_t);
ROCPD_ABI_HANDLE(rocprofiler_queue_id_t);
ROCPD_ABI_HANDLE(rocprofiler_stream_id_t);
ROCPD_ABI_HANDLE(rocprofiler_buffer_id_t);
ROCPD_ABI_HANDLE(rocprofiler_agent_id_t);
ROCPD_ABI_HANDLE(rocprofiler_counter_id_t);
ROCPD_ABI_HANDLE(rocprofiler_counter_config_id_t);
ROCPD_ABI_HANDLE(rocprofiler_callback_thread_t);
#undef ROCPD_ABI_HANDLE

typedef struct rocprofiler_correlation_id_t {
    uint64_t internal;
    rocprofiler_user_data_t external;
    uint64_t ancestor;
} rocprofiler_correlation_id_t;

typedef struct rocprofiler_async_correlation_id_t {
    uint64_t internal;
    rocprofiler_user_data_t external;
} rocprofiler_async_correlation_id_t;

/* ---- registration ---- */

typedef struct rocprofiler_client_id_t {
    size_t size;
    const char* name;
    const uint32_t handle;
} rocprofiler_client_id_t;

typedef void (*rocprofiler_client_finalize_t)(rocprofiler_client_id_t);
typedef int (*rocprofiler_tool_initialize_t)(rocprofiler_client_finalize_t finalize, void* tool_data);
typedef void (*rocprofiler_tool_finalize_t)(void* tool_data);

typedef struct rocprofiler_tool_configure_result_t {
    size_t size;
    rocprofiler_tool_initialize_t initialize;
    rocprofiler_tool_finalize_t finalize;
    void* tool_data;
} rocprofiler_tool_configure_result_t;

#endif
