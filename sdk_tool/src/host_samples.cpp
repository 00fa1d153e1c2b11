#include "host_samples.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "clock.h"
#include "config.h"
#include "pace.h"
#include "rocpd/recorder.h"

namespace rocpd {
namespace {

constexpr std::int64_t kCpu = 900001;  // counter ids beyond those of hardware counters
constexpr std::int64_t kMemory = 900002;
std::atomic<bool> g_registered{false};
std::int64_t g_cpu_track = 0;
std::int64_t g_memory_track = 0;

double resident_bytes() {
    long pages = 0;
    if (FILE* file = std::fopen("/proc/self/statm", "re")) {
        long total = 0;
        if (std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
        std::fclose(file);
    }
    return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void describe() {
    if (g_registered.exchange(true)) return;
    g_cpu_track = rocpd_register_track("process CPU time");
    g_memory_track = rocpd_register_track("process resident memory");
    rocpd_counter_t counter{};
    counter.agent_id = -1;
    counter.target_arch = "CPU";
    counter.component = "librocpd-recorder";
    counter.id = kCpu;
    counter.name = "process_cpu_time";
    counter.description = "CPU time that all threads of the process used";
    counter.units = "ns";
    counter.value_type = "ACCUM";
    rocpd_register_counter(&counter);
    counter.id = kMemory;
    counter.name = "process_resident_memory";
    counter.description = "memory of the process that is in RAM";
    counter.units = "bytes";
    counter.value_type = "ABS";
    rocpd_register_counter(&counter);
}

void sample() {
    for (Pace pace(config().sample_hz); pace.wait();) {
        const auto cpu = static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
        rocpd_sample(g_cpu_track, now_ns(), kCpu, cpu);
        rocpd_sample(g_memory_track, now_ns(), kMemory, resident_bytes());
    }
}

SamplingThread g_thread("rocpd-sampler", sample);

}  // namespace

void start_host_samples() {
    if (config().sample_hz <= 0) return;
    describe();
    g_thread.start();
}

void forget_host_samples() { g_thread.forget(); }

}  // namespace rocpd
