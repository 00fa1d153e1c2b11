#include "sdk.h"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace rocpd::client {

Sdk g_sdk{};

namespace {

constexpr const char* kLibrary = "librocprofiler-sdk.so.1";

// The SDK may have been loaded for one library alone, such as an extension of Python: RTLD_DEFAULT does not look there.
template <typename Function>
void find(Function& function, void* library, const char* name) {
    void* found = library != nullptr ? dlsym(library, name) : nullptr;
    function = reinterpret_cast<Function>(found != nullptr ? found : dlsym(RTLD_DEFAULT, name));
}

// The loader's cache holds the names of the libraries in its folders as plain text.
bool is_in_loader_cache(const std::string& name) {
    std::ifstream file("/etc/ld.so.cache", std::ios::binary);
    const std::string cache{std::istreambuf_iterator<char>(file), {}};
    return cache.find(name) != std::string::npos;
}

bool any_file(const std::string& pattern) {
    glob_t found{};
    const bool some = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0 && found.gl_pathc > 0;
    globfree(&found);
    return some;
}

}  // namespace

bool find_sdk() {
    void* const library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
#define ROCPD_FIND(NAME) find(g_sdk.NAME, library, "rocprofiler_" #NAME)
    ROCPD_FIND(create_context);
    ROCPD_FIND(start_context);
    ROCPD_FIND(stop_context);
    ROCPD_FIND(create_buffer);
    ROCPD_FIND(flush_buffer);
    ROCPD_FIND(create_callback_thread);
    ROCPD_FIND(assign_callback_thread);
    ROCPD_FIND(at_internal_thread_create);
    ROCPD_FIND(configure_callback_tracing_service);
    ROCPD_FIND(configure_buffer_tracing_service);
    ROCPD_FIND(query_buffer_tracing_kind_name);
    ROCPD_FIND(iterate_buffer_tracing_kinds);
    ROCPD_FIND(iterate_buffer_tracing_kind_operations);
    ROCPD_FIND(query_callback_tracing_kind_name);
    ROCPD_FIND(iterate_callback_tracing_kinds);
    ROCPD_FIND(query_buffer_tracing_kind_operation_name);
    ROCPD_FIND(iterate_buffer_tracing_record_args);
    ROCPD_FIND(configure_external_correlation_id_request_service);
    ROCPD_FIND(query_available_agents);
    ROCPD_FIND(iterate_agent_supported_counters);
    ROCPD_FIND(query_counter_info);
    ROCPD_FIND(query_record_counter_id);
    ROCPD_FIND(create_counter_config);
    ROCPD_FIND(configure_callback_dispatch_counting_service);
#undef ROCPD_FIND
    return g_sdk.create_context != nullptr && g_sdk.start_context != nullptr && g_sdk.stop_context != nullptr &&
           g_sdk.create_buffer != nullptr && g_sdk.flush_buffer != nullptr &&
           g_sdk.configure_callback_tracing_service != nullptr && g_sdk.configure_buffer_tracing_service != nullptr &&
           g_sdk.query_buffer_tracing_kind_name != nullptr && g_sdk.iterate_buffer_tracing_kinds != nullptr &&
           g_sdk.query_buffer_tracing_kind_operation_name != nullptr && g_sdk.query_available_agents != nullptr;
}

void (*find_mark())(const char*) {
    void* found = nullptr;
    for (const char* name : {"librocprofiler-sdk-roctx.so.1", kLibrary})
        if (void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); library != nullptr && found == nullptr)
            found = dlsym(library, "roctxMarkA");
    return reinterpret_cast<void (*)(const char*)>(found);
}

bool sdk_is_installed() {
    const char* root = std::getenv("ROCM_PATH");
    std::string folders = std::string(root != nullptr ? root : "/opt/rocm") + "/lib";
    if (const char* path = std::getenv("LD_LIBRARY_PATH")) folders += std::string(":") + path;
    for (std::size_t at = 0; at <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', at), folders.size());
        if (end > at && any_file(folders.substr(at, end - at) + "/librocprofiler-sdk.so*")) return true;
        at = end + 1;
    }
    return any_file("/opt/rocm*/lib/librocprofiler-sdk.so*") || any_file("/usr/lib*/librocprofiler-sdk.so*") ||
           any_file("/usr/lib/*/librocprofiler-sdk.so*") || is_in_loader_cache("librocprofiler-sdk.so");
}

}  // namespace rocpd::client
