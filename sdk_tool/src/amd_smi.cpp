#include "amd_smi.h"

#include <dlfcn.h>

#include <initializer_list>

#include "library.h"

namespace rocpd::amd_smi {
namespace {

bool look_up(Interface& i) {
    void* library = nullptr;
    for (const char* name : {"libamd_smi.so", "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                             "/opt/rocm/lib/libamd_smi.so"})
        if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && find_function(library, i.init, "amdsmi_init") &&
           find_function(library, i.socket_handles, "amdsmi_get_socket_handles") &&
           find_function(library, i.processor_handles, "amdsmi_get_processor_handles") &&
           find_function(library, i.address, "amdsmi_get_gpu_device_bdf") &&
           find_function(library, i.metrics, "amdsmi_get_gpu_metrics_info") &&
           find_function(library, i.memory_usage, "amdsmi_get_gpu_memory_usage");
}

}  // namespace

const Interface* load() {
    static Interface functions{};
    static const bool complete = look_up(functions);
    return complete ? &functions : nullptr;
}

}  // namespace rocpd::amd_smi
