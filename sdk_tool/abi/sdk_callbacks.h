/* Callbacks: code objects, streams, markers, RCCL.
 * Part of rocprofiler.h, which says what it is compared with. */
#ifndef ROCPD_ABI_CALLBACKS_H
#define ROCPD_ABI_CALLBACKS_H

typedef enum rocprofiler_callback_phase_t {
    ROCPROFILER_CALLBACK_PHASE_NONE = 0,
    ROCPROFILER_CALLBACK_PHASE_ENTER = 1,
    ROCPROFILER_CALLBACK_PHASE_LOAD = 1,
    ROCPROFILER_CALLBACK_PHASE_EXIT = 2,
    ROCPROFILER_CALLBACK_PHASE_UNLOAD = 2
} rocprofiler_callback_phase_t;

typedef enum rocprofiler_callback_tracing_kind_t {
    ROCPROFILER_CALLBACK_TRACING_NONE = 0,
    ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API = 5,
    ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API = 6,
    ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API = 7,
    ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API = 8,
    ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API = 9,
    ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT = 10,
    ROCPROFILER_CALLBACK_TRACING_HIP_STREAM = 20,
    ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API = 21
} rocprofiler_callback_tracing_kind_t;

typedef struct rocprofiler_callback_tracing_record_t {
    rocprofiler_context_id_t context_id;
    rocprofiler_thread_id_t thread_id;
    rocprofiler_correlation_id_t correlation_id;
    rocprofiler_callback_tracing_kind_t kind;
    rocprofiler_tracing_operation_t operation;
    rocprofiler_callback_phase_t phase;
    void* payload;
} rocprofiler_callback_tracing_record_t;

typedef void (*rocprofiler_callback_tracing_cb_t)(rocprofiler_callback_tracing_record_t record,
                                                  rocprofiler_user_data_t* user_data, void* callback_data);

typedef int (*rocprofiler_callback_tracing_kind_cb_t)(rocprofiler_callback_tracing_kind_t kind, void* data);

typedef enum rocprofiler_code_object_operation_t {
    ROCPROFILER_CODE_OBJECT_NONE = 0,
    ROCPROFILER_CODE_OBJECT_LOAD = 1,
    ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER = 2
} rocprofiler_code_object_operation_t;

typedef enum rocprofiler_code_object_storage_type_t {
    ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE = 0,
    ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE = 1,
    ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY = 2
} rocprofiler_code_object_storage_type_t;

typedef struct rocprofiler_callback_tracing_code_object_load_data_t {
    uint64_t size;
    uint64_t code_object_id;
    rocprofiler_agent_id_t agent_id;
    rocprofiler_agent_id_t hsa_agent;
    const char* uri;
    uint64_t load_base;
    uint64_t load_size;
    int64_t load_delta;
    rocprofiler_code_object_storage_type_t storage_type;
    uint64_t memory_base; /* of storage MEMORY */
    uint64_t memory_size;
} rocprofiler_callback_tracing_code_object_load_data_t;

typedef struct rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t {
    uint64_t size;
    uint64_t kernel_id;
    uint64_t code_object_id;
    const char* kernel_name;
    uint64_t kernel_object;
    uint32_t kernarg_segment_size;
    uint32_t kernarg_segment_alignment;
    uint32_t group_segment_size;
    uint32_t private_segment_size;
    uint32_t sgpr_count;
    uint32_t arch_vgpr_count;
    uint32_t accum_vgpr_count;
    int64_t kernel_code_entry_byte_offset;
    rocprofiler_address_t kernel_address;
} rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;

typedef enum rocprofiler_hip_stream_operation_t {
    ROCPROFILER_HIP_STREAM_NONE = 0,
    ROCPROFILER_HIP_STREAM_CREATE = 1,
    ROCPROFILER_HIP_STREAM_DESTROY = 2,
    ROCPROFILER_HIP_STREAM_SET = 3
} rocprofiler_hip_stream_operation_t;

typedef struct rocprofiler_callback_tracing_hip_stream_data_t {
    uint64_t size;
    rocprofiler_stream_id_t stream_id;
    rocprofiler_address_t stream_value;
} rocprofiler_callback_tracing_hip_stream_data_t;

/* Markers. The arguments of the functions that the client looks at begin with the text or the number. */
typedef enum rocprofiler_marker_core_api_id_t {
    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA = 0,
    ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA = 1,
    ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop = 2,
    ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA = 3,
    ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop = 4
} rocprofiler_marker_core_api_id_t;

typedef enum rocprofiler_marker_control_api_id_t {
    ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause = 0,
    ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume = 1
} rocprofiler_marker_control_api_id_t;

typedef enum rocprofiler_marker_name_api_id_t {
    ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread = 0,
    ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent = 1,
    ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice = 2,
    ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream = 3
} rocprofiler_marker_name_api_id_t;

typedef enum rocprofiler_marker_core_range_api_id_t {
    ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA = 0,
    ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA = 1,
    ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA = 2
} rocprofiler_marker_core_range_api_id_t;

typedef union rocprofiler_marker_api_args_t {
    struct {
        const char* message;
    } roctxMarkA;
    struct {
        uint64_t id;
    } roctxRangeStop;
    struct {
        const char* name;
        int device_id;
    } roctxNameHipDevice;
    struct {
        const char* name;
        const struct ihipStream_t* stream;
    } roctxNameHipStream;
} rocprofiler_marker_api_args_t;

typedef union rocprofiler_marker_api_retval_t {
    int32_t int32_t_retval;
    int64_t int64_t_retval;
    uint64_t roctx_range_id_t_retval;
} rocprofiler_marker_api_retval_t;

typedef struct rocprofiler_callback_tracing_marker_api_data_t {
    uint64_t size;
    rocprofiler_marker_api_args_t args;
    rocprofiler_marker_api_retval_t retval;
} rocprofiler_callback_tracing_marker_api_data_t;

/* RCCL: the calls by which the client follows who exchanges with whom. */
typedef enum rocprofiler_rccl_api_id_t {
    ROCPROFILER_RCCL_API_ID_ncclAllGather = 0,
    ROCPROFILER_RCCL_API_ID_ncclAllReduce = 1,
    ROCPROFILER_RCCL_API_ID_ncclAllToAll = 2,
    ROCPROFILER_RCCL_API_ID_ncclAllToAllv = 3,
    ROCPROFILER_RCCL_API_ID_ncclBroadcast = 4,
    ROCPROFILER_RCCL_API_ID_ncclGather = 5,
    ROCPROFILER_RCCL_API_ID_ncclReduce = 6,
    ROCPROFILER_RCCL_API_ID_ncclReduceScatter = 7,
    ROCPROFILER_RCCL_API_ID_ncclScatter = 8,
    ROCPROFILER_RCCL_API_ID_ncclSend = 9,
    ROCPROFILER_RCCL_API_ID_ncclRecv = 10,
    ROCPROFILER_RCCL_API_ID_ncclGroupStart = 13,
    ROCPROFILER_RCCL_API_ID_ncclGroupEnd = 14,
    ROCPROFILER_RCCL_API_ID_ncclCommInitRank = 17,
    ROCPROFILER_RCCL_API_ID_ncclCommInitRankConfig = 19,
    ROCPROFILER_RCCL_API_ID_ncclCommDestroy = 21,
    ROCPROFILER_RCCL_API_ID_ncclCommAbort = 22,
    ROCPROFILER_RCCL_API_ID_ncclCommSplit = 23
} rocprofiler_rccl_api_id_t;

typedef struct ncclComm* ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

typedef union rocprofiler_rccl_api_args_t {
    struct {
        const void* sendbuff;
        void* recvbuff;
        size_t sendcount;
        int datatype;
        ncclComm_t comm;
    } ncclAllGather; /* as ncclAllToAll */
    struct {
        const void* sendbuff;
        void* recvbuff;
        size_t count;
        int datatype;
        int op;
        ncclComm_t comm;
    } ncclAllReduce; /* as ncclReduceScatter; with a root for the operation: ncclBroadcast, ncclGather, ncclScatter */
    struct {
        const void* sendbuff;
        const size_t* sendcounts;
        const size_t* sdispls;
        void* recvbuff;
        const size_t* recvcounts;
        const size_t* rdispls;
        int datatype;
        ncclComm_t comm;
    } ncclAllToAllv;
    struct {
        const void* sendbuff;
        void* recvbuff;
        size_t count;
        int datatype;
        int op;
        int root;
        ncclComm_t comm;
    } ncclReduce;
    struct {
        const void* sendbuff;
        size_t count;
        int datatype;
        int peer;
        ncclComm_t comm;
    } ncclSend; /* as ncclRecv */
    struct {
        ncclComm_t* newcomm;
        int nranks;
        ncclUniqueId commId;
        int myrank;
    } ncclCommInitRank; /* as the beginning of ncclCommInitRankConfig */
    struct {
        ncclComm_t comm;
    } ncclCommDestroy; /* as ncclCommAbort */
    struct {
        ncclComm_t comm;
        int color;
        int key;
        ncclComm_t* newcomm;
    } ncclCommSplit;
} rocprofiler_rccl_api_args_t;

typedef struct rocprofiler_callback_tracing_rccl_api_data_t {
    uint64_t size;
    rocprofiler_rccl_api_args_t args;
} rocprofiler_callback_tracing_rccl_api_data_t;

#endif
