// A program with HIP that launches nothing, compiled by any compiler: what profilers have stumbled over in calls.
//
// usage: hip_calls SCENARIO; exits with 7 unless the scenario ends it.
#include <hip/hip_runtime_api.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" {
int roctxRangePushA(const char* message);
int roctxRangePop();
int roctxProfilerPause(std::uint64_t thread);
int roctxProfilerResume(std::uint64_t thread);
}

namespace {

constexpr int kCode = 7;

void calls(int count) {
    int device = 0;
    for (int i = 0; i < count; ++i) (void)hipGetDevice(&device);
}

// Paths of modules that are freed or unmapped after the call.
void paths() {
    constexpr std::size_t kPage = 4096;
    void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hipModule_t module = nullptr;
    std::strcpy(static_cast<char*>(memory), "/unmapped.co");
    (void)hipModuleLoad(&module, static_cast<char*>(memory));
    munmap(memory, kPage);
    char* path = strdup("/freed.co");
    (void)hipModuleLoad(&module, path);
    std::memset(path, 'x', std::strlen(path));
    std::free(path);
}

// A stream that is made in a pause, and the one that each thread has.
void streams() {
    hipStream_t stream = nullptr;
    roctxProfilerPause(0);
    (void)hipStreamCreate(&stream);
    roctxProfilerResume(0);
    for (const hipStream_t used : {static_cast<hipStream_t>(nullptr), stream, hipStreamPerThread})
        (void)hipStreamSynchronize(used);
    std::thread([] { (void)hipStreamSynchronize(hipStreamPerThread); }).join();
}

// More calls in the child than a buffer of the SDK holds.
void forked() {
    calls(8);
    const pid_t child = fork();
    if (child == 0) {
        calls(2000);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

// Children that are forked while other threads call; each ends by exit(), in a minute at most. The threads pause:
// SDK 1.0 remembers every call, and a child takes long to forget millions.
void storm() {
    calls(1);  // HIP sets itself up, which no fork should interrupt
    std::atomic<bool> goes_on{true};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&goes_on] {
            for (; goes_on.load(); usleep(1000)) calls(32);
        });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            calls(50);
            std::exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) _exit(1);
    }
    goes_on.store(false);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string how = argv[1];
    roctxRangePushA("step");
    if (how == "paths")
        paths();
    else if (how == "streams")
        streams();
    else if (how == "fork")
        forked();
    else if (how == "storm")
        storm();
    else
        calls(8);
    roctxRangePop();
    if (how == "_exit") _exit(kCode);
    if (how == "exit") std::exit(kCode);
    if (how == "quick_exit") std::quick_exit(kCode);
    if (how == "abort") std::abort();
    if (how == "SIGTERM") std::raise(SIGTERM);
    if (how == "SIGINT") std::raise(SIGINT);
    if (how == "SIGHUP") std::raise(SIGHUP);
    return kCode;
}
