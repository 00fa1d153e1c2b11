#include "host_samples.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "clock.h"
#include "config.h"
#include "gauges.h"
#include "node_lock.h"
#include "pace.h"

namespace rocpd {
namespace {

constexpr std::int64_t kFirstOfProcess = 900000;  // counter ids beyond those of hardware counters
constexpr std::int64_t kFirstOfNode = 901000;
constexpr std::uint64_t kFrequencyPace =
    900000000;  // [ns]; the kernel asks each core. One sample a second has it each time
constexpr double kMega = 1e6;
constexpr double kSector = 512;  // bytes, of /proc/diskstats whatever the disk

enum {
    kUserTime,
    kKernelTime,
    kPhysical,
    kVirtual,
    kHighWater,
    kSwitches,
    kFaults,
    kRead,
    kWritten,
    kFromDisk,
    kToDisk
};

const std::vector<Gauge>& of_process() {
    static const std::vector<Gauge>& all = *new std::vector<Gauge>{
        {"process_user_cpu_time", "s", "ACCUM", "CPU time of the process in its own code"},
        {"process_kernel_cpu_time", "s", "ACCUM", "CPU time of the process in the kernel"},
        {"process_physical_memory", "MB", "ABS", "Memory of the process that is in RAM"},
        {"process_virtual_memory", "MB", "ABS", "Address space of the process"},
        {"process_memory_hwm", "MB", "ABS", "Most memory that the process ever had in RAM"},
        {"process_context_switch", "count", "ACCUM", "Context switches of the process"},
        {"process_page_fault", "count", "ACCUM", "Page faults of the process"},
        {"process_read", "bytes/s", "ABS", "What the process reads by system calls, from files or the network"},
        {"process_write", "bytes/s", "ABS", "What the process writes by system calls"},
        {"process_disk_read", "bytes/s", "ABS", "What is read from disks for the process"},
        {"process_disk_write", "bytes/s", "ABS", "What is written to disks for the process"}};
    return all;
}

enum { kLoad, kFrequency, kUsed, kDiskRead, kDiskWritten, kReceived, kSent, kFabricReceived, kFabricSent };

const std::vector<Gauge>& of_node() {
    static const std::vector<Gauge>& all = *new std::vector<Gauge>{
        {"cpu_load", "%", "ABS", "CPU time in use, of all cores of the node"},
        {"cpu_frequency", "MHz", "ABS", "Mean frequency of the cores of the node"},
        {"memory_usage", "MB", "ABS", "Memory of the node that is not available to programs"},
        {"disk_read", "bytes/s", "ABS", "What the node reads from its disks"},
        {"disk_write", "bytes/s", "ABS", "What the node writes to its disks"},
        {"network_receive", "bytes/s", "ABS", "What the network devices of the node receive"},
        {"network_send", "bytes/s", "ABS", "What the network devices of the node send"},
        {"infiniband_receive", "bytes/s", "ABS", "What the node receives over InfiniBand, RDMA included"},
        {"infiniband_send", "bytes/s", "ABS", "What the node sends over InfiniBand, RDMA included"}};
    return all;
}

using Line = std::function<void(const char* line)>;

// Calls `take` with each line of a file; does nothing where there is no such file.
void each_line(const std::string& path, const Line& take) {
    FILE* file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return;
    char line[512];
    while (std::fgets(line, sizeof line, file) != nullptr) take(line);
    std::fclose(file);
}

// Calls `take` with the name of each entry of a folder.
void each_entry(const std::string& folder, const std::function<void(const std::string& name)>& take) {
    DIR* names = opendir(folder.c_str());
    if (names == nullptr) return;
    while (const dirent* entry = readdir(names))
        if (entry->d_name[0] != '.') take(entry->d_name);
    closedir(names);
}

// The number after a key such as "VmRSS:" at the start of a line.
bool number_after(const char* line, const char* key, double& number) {
    const std::size_t size = std::strlen(key);
    if (std::strncmp(line, key, size) != 0) return false;
    number = std::strtod(line + size, nullptr);
    return true;
}

// Turns counts into rates.
class Rate {
public:
    // Returns the rate per second since the last call, NAN the first time, and where the count goes back.
    double of(double count, std::uint64_t time) {
        const double rate = count >= count_ && time > time_ ? (count - count_) * 1e9 / static_cast<double>(time - time_)
                                                            : NAN;
        const bool first = time_ == 0;
        count_ = count;
        time_ = time;
        return first ? NAN : rate;
    }

private:
    double count_ = 0;
    std::uint64_t time_ = 0;  // [ns]
};

class ProcessSamples {
public:
    void take() {
        const std::uint64_t time = now_ns();
        rusage use{};
        getrusage(RUSAGE_SELF, &use);
        gauges_.set(kUserTime, seconds(use.ru_utime));
        gauges_.set(kKernelTime, seconds(use.ru_stime));
        gauges_.set(kSwitches, static_cast<double>(use.ru_nvcsw + use.ru_nivcsw));
        gauges_.set(kFaults, static_cast<double>(use.ru_minflt + use.ru_majflt));
        // ru_maxrss would be what the process had before it started its program, too.
        each_line("/proc/self/status", [&](const char* line) {
            if (std::strncmp(line, "VmHWM:", 6) == 0)
                gauges_.set(kHighWater, std::strtod(line + 6, nullptr) * 1024 / kMega);
        });
        each_line("/proc/self/statm", [&](const char* line) {
            char* rest = nullptr;
            gauges_.set(kVirtual, std::strtod(line, &rest) * page_ / kMega);
            gauges_.set(kPhysical, std::strtod(rest, nullptr) * page_ / kMega);
        });
        each_line("/proc/self/io", [&](const char* line) {
            static constexpr std::array<const char*, 4> kKeys = {"rchar:", "wchar:", "read_bytes:", "write_bytes:"};
            double count = 0;
            for (std::size_t i = 0; i < kKeys.size(); ++i)
                if (number_after(line, kKeys[i], count)) gauges_.set(kRead + i, rates_[i].of(count, time));
        });
        gauges_.record(source_, time);
    }

private:
    static double seconds(const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }

    Gauges gauges_{"process_sampling", "CPU", kFirstOfProcess, of_process()};
    const std::size_t source_ = gauges_.add_source(-1);
    const double page_ = static_cast<double>(sysconf(_SC_PAGESIZE));
    std::array<Rate, 4> rates_;
};

class NodeSamples {
public:
    void take() {
        if (!lock_.held()) return;
        const std::uint64_t time = now_ns();
        take_load();
        take_frequency(time);
        take_memory();
        take_disks(time);
        take_network(time);
        take_fabric(time);
        gauges_.record(source_, time);
    }
    void forget() { lock_.forget(); }

private:
    void take_load();
    void take_frequency(std::uint64_t time);
    void take_memory();
    void take_disks(std::uint64_t time);
    void take_network(std::uint64_t time);
    void take_fabric(std::uint64_t time);

    NodeLock lock_{"node"};
    Gauges gauges_{"system_sampling", "CPU", kFirstOfNode, of_node()};
    const std::size_t source_ = gauges_.add_source(-1);
    double busy_ = 0, all_ = 0;  // CPU time as of the last sample [ticks]
    std::uint64_t frequency_taken_ = 0;  // [ns]
    Rate read_, written_, received_, sent_, fabric_received_, fabric_sent_;
};

void NodeSamples::take_load() {
    each_line("/proc/stat", [&](const char* line) {
        if (std::strncmp(line, "cpu ", 4) != 0) return;
        double busy = 0, all = 0;
        char* at = const_cast<char*>(line) + 4;
        for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal
            const double ticks = std::strtod(at, &at);
            all += ticks;
            if (field != 3 && field != 4) busy += ticks;
        }
        if (all_ > 0 && all > all_) gauges_.set(kLoad, (busy - busy_) * 100 / (all - all_));
        busy_ = busy;
        all_ = all;
    });
}

void NodeSamples::take_frequency(std::uint64_t time) {
    if (frequency_taken_ != 0 && time - frequency_taken_ < kFrequencyPace) return;
    frequency_taken_ = time;
    double sum = 0, cores = 0;
    each_line("/proc/cpuinfo", [&](const char* line) {
        const char* colon = std::strchr(line, ':');
        if (std::strncmp(line, "cpu MHz", 7) != 0 || colon == nullptr) return;
        sum += std::strtod(colon + 1, nullptr);
        ++cores;
    });
    if (cores > 0) gauges_.set(kFrequency, sum / cores);
}

void NodeSamples::take_memory() {
    double total = NAN, available = NAN;
    each_line("/proc/meminfo", [&](const char* line) {
        number_after(line, "MemTotal:", total) || number_after(line, "MemAvailable:", available);
    });
    gauges_.set(kUsed, (total - available) * 1024 / kMega);
}

void NodeSamples::take_disks(std::uint64_t time) {
    double read = 0, written = 0;
    each_entry("/sys/block", [&](const std::string& disk) {
        // What lies on other disks counts there.
        for (const char* layer : {"loop", "ram", "zram", "dm-", "md"})
            if (disk.compare(0, std::strlen(layer), layer) == 0) return;
        each_line("/sys/block/" + disk + "/stat", [&](const char* line) {
            double fields[7] = {};
            char* at = const_cast<char*>(line);
            for (double& field : fields) field = std::strtod(at, &at);
            read += fields[2] * kSector;
            written += fields[6] * kSector;
        });
    });
    gauges_.set(kDiskRead, read_.of(read, time));
    gauges_.set(kDiskWritten, written_.of(written, time));
}

void NodeSamples::take_network(std::uint64_t time) {
    // Bonds, bridges and the like count again what goes through devices; a container may have no device.
    double received[2] = {}, sent[2] = {};
    bool devices = false;
    each_line("/proc/net/dev", [&](const char* line) {
        const char* colon = std::strchr(line, ':');
        if (colon == nullptr) return;
        const char* name = line + std::strspn(line, " ");
        const std::string interface(name, colon);
        if (interface == "lo") return;
        const bool device = access(("/sys/class/net/" + interface + "/device").c_str(), F_OK) == 0;
        devices |= device;
        double fields[9] = {};
        char* at = const_cast<char*>(colon) + 1;
        for (double& field : fields) field = std::strtod(at, &at);
        received[device] += fields[0];
        sent[device] += fields[8];
    });
    gauges_.set(kReceived, received_.of(received[devices], time));
    gauges_.set(kSent, sent_.of(sent[devices], time));
}

void NodeSamples::take_fabric(std::uint64_t time) {
    double received = NAN, sent = NAN;
    const auto add = [](double& sum, const std::string& path) {
        each_line(path, [&](const char* line) {
            sum = (std::isnan(sum) ? 0 : sum) + std::strtod(line, nullptr) * 4;  // counted in words of 4 bytes
        });
    };
    const std::string root = "/sys/class/infiniband/";
    each_entry(root, [&](const std::string& device) {
        each_entry(root + device + "/ports", [&](const std::string& port) {
            const std::string counters = root + device + "/ports/" + port + "/counters/port_";
            add(received, counters + "rcv_data");
            add(sent, counters + "xmit_data");
        });
    });
    if (std::isnan(received)) return;
    gauges_.set(kFabricReceived, fabric_received_.of(received, time));
    gauges_.set(kFabricSent, fabric_sent_.of(sent, time));
}

NodeSamples* g_node = nullptr;  // of the thread of this process; never deleted: threads outlive destructors

void sample_host() {
    ProcessSamples process;
    auto* node = new NodeSamples;
    g_node = node;
    for (Pace pace(config().sample_hz); pace.wait();) {
        if (!g_state.recording.load(std::memory_order_relaxed)) continue;
        process.take();
        node->take();
    }
}

SamplingThread g_thread("rocpd-sampler", sample_host);

}  // namespace

void start_host_samples() {
    if (config().sample_hz > 0) g_thread.start();
}

void forget_host_samples() {
    if (g_node != nullptr) g_node->forget();
    g_thread.forget();
}

}  // namespace rocpd
