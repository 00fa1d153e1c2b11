// A program with roctx, as users write them; linked with AMD's roctx or with librocpd-roctx.so.
//
// usage: roctx_program SCENARIO [LIBRARY]; exits with 7 unless the scenario ends it.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

extern "C" {
void roctxMarkA(const char* message);
int roctxRangePushA(const char* message);
int roctxRangePop();
std::uint64_t roctxRangeStartA(const char* message);
void roctxRangeStop(std::uint64_t id);
int roctxProfilerPause(std::uint64_t thread);
int roctxProfilerResume(std::uint64_t thread);
}

namespace {

constexpr int kCode = 7;

void ranges() {
    roctxRangePushA("outer");
    roctxMarkA("mark");
    const std::uint64_t whole = roctxRangeStartA("process range");
    roctxRangePushA("inner");
    roctxRangePop();
    roctxRangeStop(whole);
    roctxRangePop();
}

// Ranges around, in and after a pause.
void around_pause() {
    roctxRangePushA("A");
    roctxProfilerPause(0);
    roctxRangePushA("B");
    roctxRangePop();
    roctxProfilerResume(0);
    roctxRangePushA("D");
    roctxRangePop();
    roctxRangePop();
}

void forked() {
    ranges();
    const pid_t child = fork();
    if (child == 0) {
        ranges();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

void end(const std::string& how) {
    ranges();
    if (how == "_exit") _exit(kCode);
    if (how == "exit") std::exit(kCode);
    if (how == "quick_exit") std::quick_exit(kCode);
    if (how == "abort") std::abort();
    if (how == "SIGTERM") std::raise(SIGTERM);
    if (how == "SIGHUP") std::raise(SIGHUP);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::string how = argv[1];
    // As an extension of Python loads the SDK: for itself alone.
    if (argc > 2 && dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == nullptr) return 3;
    if (how == "ranges")
        ranges();
    else if (how == "pause")
        around_pause();
    else if (how == "fork")
        forked();
    else
        end(how);
    return kCode;
}
