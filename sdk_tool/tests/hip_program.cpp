// A program with HIP that does what profilers have stumbled over; compiled by hipcc, needs a GPU.
//
// usage: hip_program; exits with 7.
#include <hip/hip_runtime.h>

#include <cstdlib>
#include <cstring>
#include <string>

extern "C" int roctxProfilerPause(std::uint64_t thread);
extern "C" int roctxProfilerResume(std::uint64_t thread);

__global__ void add(float* values) { values[threadIdx.x] += 1; }

int main() {
    float* values = nullptr;
    if (hipMalloc(&values, 64 * sizeof(float)) != hipSuccess) return 77;
    // The name of a module is gone when the record of its call is read.
    char* path = strdup("/no/such/module.co");
    hipModule_t module = nullptr;
    (void)hipModuleLoad(&module, path);
    std::memset(path, 'x', std::strlen(path));
    std::free(path);
    // A stream that is made in a pause, and the one that each thread has.
    hipStream_t stream = nullptr;
    roctxProfilerPause(0);
    (void)hipStreamCreate(&stream);
    roctxProfilerResume(0);
    for (const hipStream_t chosen : {static_cast<hipStream_t>(nullptr), stream, hipStreamPerThread})
        add<<<1, 64, 0, chosen>>>(values);
    (void)hipDeviceSynchronize();
    return 7;
}
