// The roctx functions where there is no ROCm: markers go straight into the recorder.
//
// Loaded with LD_PRELOAD, it also serves programs that link with AMD's libroctx64 or librocprofiler-sdk-roctx.
#include <cstdint>
#include <cstring>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

#include "rocpd/recorder.h"

#define ROCTX_EXPORT __attribute__((visibility("default")))

namespace {

__attribute__((constructor)) void at_load() { rocpd_start_as_configured(); }

// Depth of the calling thread: a push returns that of the new range, a pop that of the ended one.
thread_local int t_depth = 0;

}  // namespace

extern "C" {

ROCTX_EXPORT uint32_t roctx_version_major() { return 4; }
ROCTX_EXPORT uint32_t roctx_version_minor() { return 1; }

ROCTX_EXPORT void roctxMarkA(const char* message) {
    if (message != nullptr) rocpd_mark(message, std::strlen(message));
}

ROCTX_EXPORT int roctxRangePushA(const char* message) {
    if (message == nullptr) message = "";
    rocpd_range_push(message, std::strlen(message));
    return t_depth++;
}

ROCTX_EXPORT int roctxRangePop() {
    if (t_depth == 0) return -1;
    rocpd_range_pop();
    return --t_depth;
}

ROCTX_EXPORT uint64_t roctxRangeStartA(const char* message) {
    if (message == nullptr) message = "";
    return rocpd_range_begin(message, std::strlen(message));
}

ROCTX_EXPORT void roctxRangeStop(uint64_t id) { rocpd_range_end(id); }

// Pause and resume apply to the whole process, whatever the thread id, as in AMD's profiler.
ROCTX_EXPORT int roctxProfilerPause(uint64_t) {
    rocpd_stop();
    return 0;
}

ROCTX_EXPORT int roctxProfilerResume(uint64_t) { return rocpd_start(); }

ROCTX_EXPORT int roctxNameOsThread(const char* name) {
    if (name == nullptr) return -1;
    rocpd_name_thread(name, std::strlen(name));
    return 0;
}

ROCTX_EXPORT int roctxNameHsaAgent(const char*, const void*) { return 0; }

ROCTX_EXPORT int roctxNameHipDevice(const char* name, int device) {
    if (name == nullptr) return -1;
    rocpd_note(("hip_device_" + std::to_string(device)).c_str(), name);
    return 0;
}

ROCTX_EXPORT int roctxNameHipStream(const char* name, const void* stream) {
    if (name == nullptr) return -1;
    rocpd_register_stream(static_cast<int64_t>(reinterpret_cast<std::intptr_t>(stream)), name);
    return 0;
}

ROCTX_EXPORT int roctxGetThreadId(uint64_t* tid) {
    if (tid == nullptr) return -1;
    *tid = static_cast<uint64_t>(syscall(SYS_gettid));
    return 0;
}

}  // extern "C"
