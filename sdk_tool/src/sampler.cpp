#include "sampler.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "clock.h"
#include "config.h"
#include "lifecycle.h"
#include "rocpd/recorder.h"
#include "state.h"

namespace rocpd {
namespace {

constexpr std::int64_t kCpu = 900001;  // counter ids beyond those of hardware counters
constexpr std::int64_t kMemory = 900002;
std::atomic<bool> g_registered{false};
std::atomic<bool> g_running{false};  // the thread, in this process
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

void* sample_thread(void*) {
    pthread_setname_np(pthread_self(), "rocpd-sampler");
    const auto period = static_cast<std::uint64_t>(1e9 / config().sample_hz);
    std::uint64_t due = clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        // Sleeps first: a process that ends before, such as a child that only runs another program, leaves no file.
        due += period;
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (due < now) due = now;  // late: go on from here rather than catch up
        const timespec until{static_cast<time_t>(due / 1000000000), static_cast<long>(due % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
        }
        const Phase phase = g_state.phase.load(std::memory_order_acquire);
        if (phase == Phase::kClosed || phase == Phase::kFailed) return nullptr;
        const auto cpu = static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID));
        rocpd_sample(g_cpu_track, now_ns(), kCpu, cpu);
        rocpd_sample(g_memory_track, now_ns(), kMemory, resident_bytes());
    }
}

}  // namespace

void start_sampling() {
    if (config().sample_hz <= 0 || !g_state.recording.load()) return;
    describe();
    if (!g_running.exchange(true) && !start_service_thread(sample_thread, nullptr)) g_running.store(false);
}

void forget_sampling() { g_running.store(false); }

}  // namespace rocpd
