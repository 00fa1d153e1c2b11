#include "amd_smi.h"

#include <dlfcn.h>

#include <initializer_list>

namespace rocpd::amd_smi {
namespace {

template <typename Function>
bool find(void* library, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool look_up(Interface& i) {
    void* library = nullptr;
    for (const char* name : {"libamd_smi.so", "libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                             "/opt/rocm/lib/libamd_smi.so"})
        if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && find(library, i.init, "amdsmi_init") &&
           find(library, i.socket_handles, "amdsmi_get_socket_handles") &&
           find(library, i.processor_handles, "amdsmi_get_processor_handles") &&
           find(library, i.address, "amdsmi_get_gpu_device_bdf") &&
           find(library, i.metrics, "amdsmi_get_gpu_metrics_info") &&
           find(library, i.memory_usage, "amdsmi_get_gpu_memory_usage");
}

}  // namespace

const Interface* load() {
    static Interface functions{};
    static const bool complete = look_up(functions);
    return complete ? &functions : nullptr;
}

}  // namespace rocpd::amd_smi
