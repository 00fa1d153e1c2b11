// rocprofiler-sdk's functions, found at run time: the client loads where there is no ROCm too.
#pragma once

#ifdef ROCPD_SDK_HEADERS
#include <rocprofiler-sdk/experimental/counters.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>
#else
#include "rocprofiler.h"
#endif

#include <cstddef>
#include <cstdint>

namespace rocpd::client {

inline bool good(rocprofiler_status_t status) { return status == ROCPROFILER_STATUS_SUCCESS; }

// Every function that is used; one that an older SDK lacks is null.
struct Sdk {
    rocprofiler_status_t (*create_context)(rocprofiler_context_id_t*);
    rocprofiler_status_t (*start_context)(rocprofiler_context_id_t);
    rocprofiler_status_t (*stop_context)(rocprofiler_context_id_t);
    rocprofiler_status_t (*create_buffer)(rocprofiler_context_id_t, std::size_t, std::size_t,
                                          rocprofiler_buffer_policy_t, rocprofiler_buffer_tracing_cb_t, void*,
                                          rocprofiler_buffer_id_t*);
    rocprofiler_status_t (*flush_buffer)(rocprofiler_buffer_id_t);
    rocprofiler_status_t (*create_callback_thread)(rocprofiler_callback_thread_t*);
    rocprofiler_status_t (*assign_callback_thread)(rocprofiler_buffer_id_t, rocprofiler_callback_thread_t);
    rocprofiler_status_t (*at_internal_thread_create)(rocprofiler_internal_thread_library_cb_t,
                                                      rocprofiler_internal_thread_library_cb_t, int, void*);
    rocprofiler_status_t (*configure_callback_tracing_service)(rocprofiler_context_id_t,
                                                               rocprofiler_callback_tracing_kind_t,
                                                               const rocprofiler_tracing_operation_t*, std::size_t,
                                                               rocprofiler_callback_tracing_cb_t, void*);
    rocprofiler_status_t (*configure_buffer_tracing_service)(rocprofiler_context_id_t,
                                                             rocprofiler_buffer_tracing_kind_t,
                                                             const rocprofiler_tracing_operation_t*, std::size_t,
                                                             rocprofiler_buffer_id_t);
    rocprofiler_status_t (*query_buffer_tracing_kind_name)(rocprofiler_buffer_tracing_kind_t, const char**,
                                                           std::uint64_t*);
    rocprofiler_status_t (*iterate_buffer_tracing_kinds)(rocprofiler_buffer_tracing_kind_cb_t, void*);
    rocprofiler_status_t (*iterate_buffer_tracing_kind_operations)(rocprofiler_buffer_tracing_kind_t,
                                                                   rocprofiler_buffer_tracing_kind_operation_cb_t,
                                                                   void*);
    rocprofiler_status_t (*query_callback_tracing_kind_name)(rocprofiler_callback_tracing_kind_t, const char**,
                                                             std::uint64_t*);
    rocprofiler_status_t (*iterate_callback_tracing_kinds)(rocprofiler_callback_tracing_kind_cb_t, void*);
    rocprofiler_status_t (*query_buffer_tracing_kind_operation_name)(rocprofiler_buffer_tracing_kind_t,
                                                                     rocprofiler_tracing_operation_t, const char**,
                                                                     std::uint64_t*);
    rocprofiler_status_t (*iterate_buffer_tracing_record_args)(rocprofiler_record_header_t,
                                                               rocprofiler_buffer_tracing_operation_args_cb_t, void*);
    rocprofiler_status_t (*configure_external_correlation_id_request_service)(
        rocprofiler_context_id_t, const rocprofiler_external_correlation_id_request_kind_t*, std::size_t,
        rocprofiler_external_correlation_id_request_cb_t, void*);
    rocprofiler_status_t (*query_available_agents)(rocprofiler_agent_version_t, rocprofiler_query_available_agents_cb_t,
                                                   std::size_t, void*);
    rocprofiler_status_t (*iterate_agent_supported_counters)(rocprofiler_agent_id_t,
                                                             rocprofiler_available_counters_cb_t, void*);
    rocprofiler_status_t (*query_counter_info)(rocprofiler_counter_id_t, rocprofiler_counter_info_version_id_t, void*);
    rocprofiler_status_t (*query_record_counter_id)(rocprofiler_counter_instance_id_t, rocprofiler_counter_id_t*);
    rocprofiler_status_t (*create_counter_config)(rocprofiler_agent_id_t, rocprofiler_counter_id_t*, std::size_t,
                                                  rocprofiler_counter_config_id_t*);
    rocprofiler_status_t (*configure_callback_dispatch_counting_service)(
        rocprofiler_context_id_t, rocprofiler_dispatch_counting_service_cb_t, void*,
        rocprofiler_dispatch_counting_record_cb_t, void*);
};

// The functions, once `find_sdk` has found them.
extern Sdk g_sdk;

// Looks up the functions in the loaded libraries. Returns false when a necessary one is missing.
bool find_sdk();

// roctxMarkA of the SDK's own roctx, where that is loaded; null where it is not.
void (*find_mark())(const char*);

// Whether an SDK is installed in a usual place; loads nothing.
bool sdk_is_installed();

}  // namespace rocpd::client
