// A libamdhip64 that does nothing, for tests above a real rocprofiler-sdk on machines without a GPU: it registers the
// table of its functions with rocprofiler-register, as HIP does, and the functions that the program calls go through
// it.
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <hip/amd_detail/amd_hip_gl_interop.h>
#include <hip/amd_detail/hip_api_trace.hpp>

#include <cstdint>

extern "C" {
using Import = std::uint32_t (*)();
int rocprofiler_register_library_api_table(const char* name, Import import, std::uint32_t version, void** tables,
                                           std::uint64_t count, std::uint64_t* id);
__attribute__((visibility("default"))) std::uint32_t rocprofiler_register_import_hip() { return 60400; }
}

namespace {

hipError_t nothing() { return hipSuccess; }

hipError_t make_stream(hipStream_t* stream) {
    static std::uintptr_t last = 0x5000;
    *stream = reinterpret_cast<hipStream_t>(++last);
    return hipSuccess;
}

hipError_t allocate(void** memory, std::size_t) {
    static char pool[64];
    *memory = pool;
    return hipSuccess;
}

hipError_t load(hipModule_t*, const char*) { return hipErrorFileNotFound; }

hipError_t device(int* number) {
    *number = 0;
    return hipSuccess;
}

// All functions of the table do nothing but those that the program needs.
HipDispatchTable* filled() {
    static HipDispatchTable table{};
    auto* const words = reinterpret_cast<void**>(&table);
    for (std::size_t i = 1; i < sizeof(table) / sizeof(void*); ++i) words[i] = reinterpret_cast<void*>(&nothing);
    table.size = sizeof(table);
    table.hipStreamCreate_fn = make_stream;
    table.hipMalloc_fn = allocate;
    table.hipModuleLoad_fn = load;
    table.hipGetDevice_fn = device;
    return &table;
}

const HipDispatchTable& table() {
    static HipDispatchTable* const only = [] {
        HipDispatchTable* made = filled();
        void* tables[] = {made};
        std::uint64_t id = 0;
        rocprofiler_register_library_api_table("hip", &rocprofiler_register_import_hip, 60400, tables, 1, &id);
        return made;
    }();
    return *only;
}

}  // namespace

extern "C" {
#define EXPORT __attribute__((visibility("default")))
EXPORT hipError_t hipMalloc(void** memory, std::size_t size) { return table().hipMalloc_fn(memory, size); }
EXPORT hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
    return table().hipModuleLoad_fn(module, path);
}
EXPORT hipError_t hipStreamCreate(hipStream_t* stream) { return table().hipStreamCreate_fn(stream); }
EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) { return table().hipStreamSynchronize_fn(stream); }
EXPORT hipError_t hipGetDevice(int* number) { return table().hipGetDevice_fn(number); }
EXPORT hipError_t hipDeviceSynchronize() { return table().hipDeviceSynchronize_fn(); }
}
