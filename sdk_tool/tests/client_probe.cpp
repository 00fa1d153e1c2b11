// An application on the stand-in SDK: threads that do GPU work. Run with librocpd-tool.so preloaded.
//
// usage: client_probe THREADS ROUNDS [SCENARIO]; exits with 7.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "standin_sdk.h"

namespace {

constexpr int kCode = 7;

// A function of the recorder, which the preloaded client brings along.
template <typename Function>
Function* recorder(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function*>(found);
}

void pause(int rounds) {
    standin::pause();
    standin::work(rounds);
    standin::resume();
    standin::work(1);
}

// Each round has its number as external correlation id, but for the last.
void correlate(int rounds) {
    auto* const correlate = recorder<int(std::uint64_t)>("rocpd_correlate");
    for (int round = 1; round <= rounds; ++round) {
        correlate(static_cast<std::uint64_t>(1000 + round));
        standin::work(1);
    }
    correlate(0);
    standin::work(1);
}

void graph(int rounds) {
    standin::graph(rounds);
    standin::graph(1);
}

// Off and on again by the recorder, not by roctx; what happens meanwhile is not recorded.
void stop(int rounds) {
    recorder<int()>("rocpd_stop")();
    standin::work(rounds);
    recorder<int()>("rocpd_start")();
    standin::work(1);
}

void open(int) {
    standin::leave_open();
    standin::across_pause();
    std::thread(standin::leave_open).join();
}

void names(int) {
    standin::name(ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread, "main thread");
    standin::name(ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice, "first GPU");
    for (int i = 0; i < 3; ++i) standin::name_stream("compute", 0x5001);
    standin::name_stream("nobody's", 0x7777);
}

// A signal arrives while the SDK has locked its buffer, and its handler ends the process.
void handler(int) {
    signal(SIGUSR1, [](int) { _exit(kCode); });
    standin::interrupt_puts([] { raise(SIGUSR1); });
    standin::work(1);
}

const std::map<std::string, std::function<void(int)>> kScenarios = {
    {"pause", pause}, {"correlate", correlate}, {"graph", graph},     {"stop", stop},
    {"open", open},   {"names", names},         {"handler", handler}, {"_exit", [](int) { _exit(kCode); }},
    {"twice", [](int) { standin::finish(); }},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string how = argc > 3 ? argv[3] : "";
    if (how == "old") return standin::start(700) ? 1 : kCode;
    if (how == "calls") standin::tell_ranges_as_calls();
    if (how == "early") {  // ranges long before the SDK sets its clients up
        recorder<int()>("rocpd_start")();
        for (int i = 0; i < 100; ++i) {
            recorder<int(const char*, std::size_t)>("rocpd_range_push")("early", 5);
            recorder<int()>("rocpd_range_pop")();
        }
        recorder<int()>("rocpd_flush")();
    }
    if (!standin::start()) return 1;
    const int rounds = std::atoi(argv[2]);
    std::vector<std::thread> threads;
    for (int t = 0; t < std::atoi(argv[1]); ++t) threads.emplace_back([rounds] { standin::work(rounds); });
    for (std::thread& thread : threads) thread.join();
    if (const auto scenario = kScenarios.find(how); scenario != kScenarios.end()) scenario->second(rounds);
    standin::finish();
    return kCode;
}
