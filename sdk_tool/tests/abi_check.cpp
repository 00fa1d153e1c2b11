// Compares the declarations of abi/rocprofiler.h with real headers of rocprofiler-sdk: sizes, offsets, values.
// Compiling is the test. The header set that the triton wheel carries is enough.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/internal_threading.h>
#include <rocprofiler-sdk/marker/api_args.h>
#include <rocprofiler-sdk/marker/api_id.h>
#include <rocprofiler-sdk/registration.h>

namespace mine {
#define ROCPD_ABI_IN_NAMESPACE
#include "../abi/rocprofiler.h"
}  // namespace mine

#define SAME_SIZE(T) static_assert(sizeof(mine::T) == sizeof(::T) && alignof(mine::T) == alignof(::T), #T)
#define SAME_PLACE(T, M) \
    static_assert(offsetof(mine::T, M) == offsetof(::T, M) && sizeof(mine::T::M) == sizeof(::T::M), #T "." #M)
#define SAME_VALUE(E) static_assert(static_cast<long>(mine::E) == static_cast<long>(::E), #E)

SAME_SIZE(rocprofiler_status_t);
SAME_SIZE(rocprofiler_user_data_t);
SAME_SIZE(rocprofiler_address_t);
SAME_SIZE(rocprofiler_dim3_t);
SAME_SIZE(rocprofiler_context_id_t);
SAME_SIZE(rocprofiler_stream_id_t);
SAME_SIZE(rocprofiler_counter_config_id_t);
SAME_SIZE(rocprofiler_callback_thread_t);
SAME_SIZE(rocprofiler_counter_record_t);
SAME_SIZE(rocprofiler_record_header_t);
SAME_SIZE(rocprofiler_marker_api_args_t);
SAME_SIZE(rocprofiler_marker_api_retval_t);

SAME_SIZE(rocprofiler_client_id_t);
SAME_PLACE(rocprofiler_client_id_t, name);
SAME_PLACE(rocprofiler_client_id_t, handle);
SAME_SIZE(rocprofiler_tool_configure_result_t);
SAME_PLACE(rocprofiler_tool_configure_result_t, initialize);
SAME_PLACE(rocprofiler_tool_configure_result_t, finalize);
SAME_PLACE(rocprofiler_tool_configure_result_t, tool_data);

SAME_SIZE(rocprofiler_correlation_id_t);
SAME_PLACE(rocprofiler_correlation_id_t, internal);
SAME_PLACE(rocprofiler_correlation_id_t, external);
SAME_PLACE(rocprofiler_correlation_id_t, ancestor);
SAME_SIZE(rocprofiler_async_correlation_id_t);
SAME_PLACE(rocprofiler_async_correlation_id_t, external);

SAME_SIZE(rocprofiler_callback_tracing_record_t);
SAME_PLACE(rocprofiler_callback_tracing_record_t, thread_id);
SAME_PLACE(rocprofiler_callback_tracing_record_t, correlation_id);
SAME_PLACE(rocprofiler_callback_tracing_record_t, kind);
SAME_PLACE(rocprofiler_callback_tracing_record_t, operation);
SAME_PLACE(rocprofiler_callback_tracing_record_t, phase);
SAME_PLACE(rocprofiler_callback_tracing_record_t, payload);

SAME_SIZE(rocprofiler_callback_tracing_code_object_load_data_t);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, code_object_id);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, agent_id);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, uri);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, load_base);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, load_size);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, load_delta);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, storage_type);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, memory_base);
SAME_PLACE(rocprofiler_callback_tracing_code_object_load_data_t, memory_size);

SAME_SIZE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, kernel_id);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, kernel_name);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, kernel_object);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, sgpr_count);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, accum_vgpr_count);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, kernel_code_entry_byte_offset);
SAME_PLACE(rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, kernel_address);

SAME_SIZE(rocprofiler_callback_tracing_marker_api_data_t);
SAME_PLACE(rocprofiler_callback_tracing_marker_api_data_t, args);
SAME_PLACE(rocprofiler_callback_tracing_marker_api_data_t, retval);

SAME_SIZE(rocprofiler_kernel_dispatch_info_t);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, agent_id);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, queue_id);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, kernel_id);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, dispatch_id);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, private_segment_size);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, group_segment_size);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, workgroup_size);
SAME_PLACE(rocprofiler_kernel_dispatch_info_t, grid_size);

SAME_SIZE(rocprofiler_buffer_tracing_kernel_dispatch_record_t);
SAME_PLACE(rocprofiler_buffer_tracing_kernel_dispatch_record_t, operation);
SAME_PLACE(rocprofiler_buffer_tracing_kernel_dispatch_record_t, correlation_id);
SAME_PLACE(rocprofiler_buffer_tracing_kernel_dispatch_record_t, thread_id);
SAME_PLACE(rocprofiler_buffer_tracing_kernel_dispatch_record_t, start_timestamp);
SAME_PLACE(rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info);

SAME_SIZE(rocprofiler_agent_v0_t);
SAME_PLACE(rocprofiler_agent_v0_t, type);
SAME_PLACE(rocprofiler_agent_v0_t, wave_front_size);
SAME_PLACE(rocprofiler_agent_v0_t, num_xcc);
SAME_PLACE(rocprofiler_agent_v0_t, cu_count);
SAME_PLACE(rocprofiler_agent_v0_t, gfx_target_version);
SAME_PLACE(rocprofiler_agent_v0_t, vendor_id);
SAME_PLACE(rocprofiler_agent_v0_t, max_engine_clk_fcompute);
SAME_PLACE(rocprofiler_agent_v0_t, sdma_fw_version);
SAME_PLACE(rocprofiler_agent_v0_t, grid_max_size);
SAME_PLACE(rocprofiler_agent_v0_t, local_mem_size);
SAME_PLACE(rocprofiler_agent_v0_t, gpu_id);
SAME_PLACE(rocprofiler_agent_v0_t, name);
SAME_PLACE(rocprofiler_agent_v0_t, vendor_name);
SAME_PLACE(rocprofiler_agent_v0_t, product_name);
SAME_PLACE(rocprofiler_agent_v0_t, model_name);
SAME_PLACE(rocprofiler_agent_v0_t, node_id);
SAME_PLACE(rocprofiler_agent_v0_t, logical_node_id);
SAME_PLACE(rocprofiler_agent_v0_t, logical_node_type_id);
SAME_PLACE(rocprofiler_agent_v0_t, runtime_visibility);
SAME_PLACE(rocprofiler_agent_v0_t, uuid);
SAME_SIZE(rocprofiler_agent_mem_bank_t);
SAME_PLACE(rocprofiler_agent_mem_bank_t, size_in_bytes);
SAME_SIZE(rocprofiler_agent_cache_t);
SAME_PLACE(rocprofiler_agent_cache_t, level);
SAME_PLACE(rocprofiler_agent_cache_t, type);
SAME_SIZE(rocprofiler_agent_io_link_t);
SAME_PLACE(rocprofiler_agent_io_link_t, recommended_transfer_size);
SAME_PLACE(rocprofiler_agent_io_link_t, flags);
// The client finds a call's arguments there during the call.
static_assert(offsetof(::rocprofiler_callback_tracing_hip_api_data_t, args) == sizeof(std::uint64_t));

SAME_VALUE(ROCPROFILER_CALLBACK_PHASE_ENTER);
SAME_VALUE(ROCPROFILER_CALLBACK_PHASE_LOAD);
SAME_VALUE(ROCPROFILER_CALLBACK_PHASE_EXIT);
SAME_VALUE(ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT);
SAME_VALUE(ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM);
SAME_VALUE(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API);
SAME_VALUE(ROCPROFILER_CODE_OBJECT_LOAD);
SAME_VALUE(ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
SAME_VALUE(ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE);
SAME_VALUE(ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY);
SAME_VALUE(ROCPROFILER_HIP_STREAM_CREATE);
SAME_VALUE(ROCPROFILER_HIP_STREAM_DESTROY);
SAME_VALUE(ROCPROFILER_HIP_STREAM_SET);
SAME_VALUE(ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA);
SAME_VALUE(ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA);
SAME_VALUE(ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop);
SAME_VALUE(ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA);
SAME_VALUE(ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop);
SAME_VALUE(ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause);
SAME_VALUE(ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume);
SAME_VALUE(ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread);
SAME_VALUE(ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent);
SAME_VALUE(ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice);
SAME_VALUE(ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream);
SAME_VALUE(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA);
SAME_VALUE(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA);
SAME_VALUE(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA);
SAME_VALUE(ROCPROFILER_BUFFER_CATEGORY_TRACING);
SAME_VALUE(ROCPROFILER_BUFFER_POLICY_LOSSLESS);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HSA_CORE_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_MEMORY_COPY);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_RCCL_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_OMPT);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_ROCDECODE_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_ROCJPEG_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_KFD_QUEUE);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT);
SAME_VALUE(ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT);
SAME_VALUE(ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
SAME_VALUE(ROCPROFILER_MEMORY_COPY_HOST_TO_HOST);
SAME_VALUE(ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
SAME_VALUE(ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
SAME_VALUE(ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE);
SAME_VALUE(ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
SAME_VALUE(ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE);
SAME_VALUE(ROCPROFILER_MEMORY_ALLOCATION_FREE);
SAME_VALUE(ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE);
SAME_VALUE(ROCPROFILER_SCRATCH_MEMORY_ALLOC);
SAME_VALUE(ROCPROFILER_SCRATCH_MEMORY_FREE);
SAME_VALUE(ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM);
SAME_VALUE(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY);
SAME_VALUE(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH);
SAME_VALUE(ROCPROFILER_AGENT_TYPE_CPU);
SAME_VALUE(ROCPROFILER_AGENT_TYPE_GPU);
SAME_VALUE(ROCPROFILER_AGENT_INFO_VERSION_0);
SAME_VALUE(ROCPROFILER_COUNTER_INFO_VERSION_0);
SAME_VALUE(ROCPROFILER_LIBRARY);
SAME_VALUE(ROCPROFILER_HSA_LIBRARY);
SAME_VALUE(ROCPROFILER_HIP_LIBRARY);
SAME_VALUE(ROCPROFILER_MARKER_LIBRARY);

// Functions are looked up at run time: nothing but this compares how they are called.
#define CALLED_WITH(F, ...) static_assert(std::is_invocable_r_v<rocprofiler_status_t, decltype(F)*, __VA_ARGS__>, #F)
CALLED_WITH(rocprofiler_push_external_correlation_id, rocprofiler_context_id_t, rocprofiler_thread_id_t,
            rocprofiler_user_data_t);
CALLED_WITH(rocprofiler_pop_external_correlation_id, rocprofiler_context_id_t, rocprofiler_thread_id_t,
            rocprofiler_user_data_t*);
static_assert(std::is_invocable_r_v<int, rocprofiler_external_correlation_id_request_cb_t, rocprofiler_thread_id_t,
                                    rocprofiler_context_id_t, rocprofiler_external_correlation_id_request_kind_t,
                                    rocprofiler_tracing_operation_t, std::uint64_t, rocprofiler_user_data_t*, void*>);

// What only a full installation declares.
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
#include <rocprofiler-sdk/experimental/counters.h>
#include <rocprofiler-sdk/rocprofiler.h>

SAME_SIZE(rocprofiler_buffer_tracing_hip_api_record_t);
SAME_PLACE(rocprofiler_buffer_tracing_hip_api_record_t, operation);
SAME_PLACE(rocprofiler_buffer_tracing_hip_api_record_t, correlation_id);
SAME_PLACE(rocprofiler_buffer_tracing_hip_api_record_t, start_timestamp);
SAME_PLACE(rocprofiler_buffer_tracing_hip_api_record_t, thread_id);
// The client reads all calls as that one.
#define SAME_AS_HIP(T, M) \
    static_assert(offsetof(mine::rocprofiler_buffer_tracing_hip_api_record_t, M) == offsetof(::T, M))
SAME_AS_HIP(rocprofiler_buffer_tracing_hip_api_ext_record_t, correlation_id);
SAME_AS_HIP(rocprofiler_buffer_tracing_hip_api_ext_record_t, thread_id);
SAME_AS_HIP(rocprofiler_buffer_tracing_hsa_api_record_t, correlation_id);
SAME_AS_HIP(rocprofiler_buffer_tracing_hsa_api_record_t, thread_id);
SAME_AS_HIP(rocprofiler_buffer_tracing_rccl_api_record_t, correlation_id);
SAME_AS_HIP(rocprofiler_buffer_tracing_rccl_api_record_t, thread_id);
SAME_SIZE(rocprofiler_buffer_tracing_memory_copy_record_t);
SAME_PLACE(rocprofiler_buffer_tracing_memory_copy_record_t, dst_agent_id);
SAME_PLACE(rocprofiler_buffer_tracing_memory_copy_record_t, bytes);
SAME_PLACE(rocprofiler_buffer_tracing_memory_copy_record_t, src_address);
SAME_SIZE(rocprofiler_buffer_tracing_memory_allocation_record_t);
SAME_PLACE(rocprofiler_buffer_tracing_memory_allocation_record_t, agent_id);
SAME_PLACE(rocprofiler_buffer_tracing_memory_allocation_record_t, allocation_size);
SAME_SIZE(rocprofiler_buffer_tracing_scratch_memory_record_t);
SAME_PLACE(rocprofiler_buffer_tracing_scratch_memory_record_t, queue_id);
SAME_PLACE(rocprofiler_buffer_tracing_scratch_memory_record_t, flags);
SAME_PLACE(rocprofiler_buffer_tracing_scratch_memory_record_t, allocation_size);
SAME_SIZE(rocprofiler_callback_tracing_hip_stream_data_t);
SAME_PLACE(rocprofiler_callback_tracing_hip_stream_data_t, stream_id);
SAME_PLACE(rocprofiler_callback_tracing_hip_stream_data_t, stream_value);
SAME_SIZE(rocprofiler_counter_info_v0_t);
SAME_PLACE(rocprofiler_counter_info_v0_t, name);
SAME_PLACE(rocprofiler_counter_info_v0_t, expression);
SAME_SIZE(rocprofiler_dispatch_counting_service_data_t);
SAME_PLACE(rocprofiler_dispatch_counting_service_data_t, dispatch_info);
#endif
