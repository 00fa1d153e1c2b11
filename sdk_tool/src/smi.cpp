#include "smi.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "amd_smi.h"
#include "config.h"
#include "environment.h"
#include "gauges.h"
#include "lifecycle.h"
#include "node_lock.h"
#include "pace.h"
#include "rank.h"
#include "registrations.h"
#include "rocpd/recorder.h"
#include "say.h"

namespace rocpd {
namespace {

constexpr std::int64_t kFirstCounter = 910000;        // beyond the ids of hardware counters
constexpr std::int64_t kFirstAgent = 1000000;         // of GPUs that no SDK has registered
constexpr std::uint64_t kOthersAfter =
    1000000000;  // [ns]: the ranks of a node share its GPUs, each takes its own first

enum {
    kBusyGfx, kBusyUmc, kBusyMm, kMemory, kPower, kTemperature, kTemperatureMemory, kGfxClock, kMemoryClock,
    kThrottle, kThrottleProchot, kThrottlePower, kThrottleSocket, kThrottleVr, kThrottleHbm,
    kPcieWidth, kPcieSpeed, kPcieAccumulated, kPcieNow, kXgmiWidth, kXgmiSpeed, kXgmiRead, kXgmiWritten
};

const std::vector<Gauge>& gauges() {
    static const std::vector<Gauge>& all = *new std::vector<Gauge>{
        {"device_busy_gfx", "%", "ABS", "Busy percentage of the compute and graphics engine of a GPU"},
        {"device_busy_umc", "%", "ABS", "Busy percentage of the memory controller of a GPU"},
        {"device_busy_mm", "%", "ABS", "Busy percentage of the multimedia engine of a GPU"},
        {"device_memory_usage", "MB", "ABS", "Memory of a GPU that is in use"},
        {"device_power", "W", "ABS", "Power of a GPU's socket"},
        {"device_temp", "°C", "ABS", "Temperature of a GPU: of its hottest spot, where that is known"},
        {"device_temp_memory", "°C", "ABS", "Temperature of a GPU's memory"},
        {"device_gfx_clock", "MHz", "ABS", "Clock of a GPU's compute units; of several dies the highest"},
        {"device_mem_clock", "MHz", "ABS", "Clock of a GPU's memory"},
        {"device_throttle_status", "bits", "ABS", "Why a GPU's clocks are reduced, one bit a reason; 0: they are not"},
        {"device_throttle_prochot", "%", "ABS", "Time in which a GPU was throttled as a processor was too hot"},
        {"device_throttle_power", "%", "ABS", "Time in which a GPU was throttled to keep its power limit"},
        {"device_throttle_temp", "%", "ABS", "Time in which a GPU was throttled as its socket was too hot"},
        {"device_throttle_vr_temp", "%", "ABS", "Time in which a GPU was throttled as a voltage regulator was too hot"},
        {"device_throttle_memory_temp", "%", "ABS", "Time in which a GPU was throttled as its memory was too hot"},
        {"device_pcie_link_width", "lanes", "ABS", "Lanes of a GPU's PCIe link"},
        {"device_pcie_link_speed", "MT/s", "ABS", "Speed of a GPU's PCIe link"},
        {"device_pcie_bandwidth_acc", "count", "ACCUM",
         "What went over a GPU's PCIe link; the driver does not say in what"},
        {"device_pcie_bandwidth_inst", "bytes/s", "ABS", "What goes over a GPU's PCIe link, as the driver says"},
        {"device_xgmi_link_width", "lanes", "ABS", "Lanes of a GPU's XGMI links"},
        {"device_xgmi_link_speed", "Mbps", "ABS", "Speed of a GPU's XGMI links"},
        {"device_xgmi_read_data", "KB", "ACCUM", "What a GPU received over all its XGMI links"},
        {"device_xgmi_write_data", "KB", "ACCUM", "What a GPU sent over all its XGMI links"}};
    return all;
}

template <typename T>
double sum_of(const T* values, std::size_t count) {
    double sum = NAN;
    for (std::size_t i = 0; i < count; ++i)
        if (const double value = known(values[i]); !std::isnan(value)) sum = std::isnan(sum) ? value : sum + value;
    return sum;
}

template <typename T>
double largest_of(const T* values, std::size_t count) {
    double largest = NAN;
    for (std::size_t i = 0; i < count; ++i)
        if (const double value = known(values[i]); !(value <= largest)) largest = std::isnan(value) ? largest : value;
    return largest;
}

// The first that is known; 0 stands for unknown too where `zero_is_known` is false.
double first_of(double a, double b, bool zero_is_known = false) {
    return std::isnan(a) || (a == 0 && !zero_is_known) ? b : a;
}

std::string name_of(amd_smi::Address a) {
    char text[48];
    std::snprintf(text, sizeof text, "%04llx:%02x:%02x.%x", static_cast<unsigned long long>(a >> 16),
                  static_cast<unsigned>(a >> 8 & 0xff), static_cast<unsigned>(a >> 3 & 0x1f),
                  static_cast<unsigned>(a & 7));
    return text;
}

// The number that follows a name in a JSON object, -1 where there is none.
long long number_in(const std::string& json, const std::string& name) {
    const auto at = json.find("\"" + name + "\":");
    return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + name.size() + 3);
}

// Whether a row is that of a GPU that the SDK registered.
bool is_gpu(const Registration& row) {
    return row.table == &kAgent && row.cells[1] == Cell(std::string("GPU")) &&
           std::get<std::int64_t>(row.cells[0]) < kFirstAgent;
}

// Whether the GPU of a row is the one at this address.
bool is_at(const Registration& row, amd_smi::Address address) {
    const auto& facts = std::get<std::string>(row.cells.back());
    return number_in(facts, "location_id") == static_cast<long long>(address & 0xffff) &&
           std::max(number_in(facts, "domain"), 0LL) == static_cast<long long>(address >> 16);
}

// The speed of a PCIe link [MT/s], which older drivers give as its generation.
double pcie_speed(double given) {
    constexpr double kGenerations[] = {NAN, 2500, 5000, 8000, 16000, 32000, 64000};
    return given >= 0 && given <= 6 ? kGenerations[static_cast<int>(given)] : given * 100;
}

struct Gpu {
    amd_smi::Processor handle;
    amd_smi::Address address;
    NodeLock lock;
    bool first_choice;          // of this rank
    std::int64_t agent = -1;
    std::size_t seen = 0;       // registrations among which its agent is not
    std::size_t source = 0;     // in the gauges
    amd_smi::Metrics last{};    // as of the last sample
    bool has_last = false;
};

class Smi {
public:
    explicit Smi(const amd_smi::Interface& smi) : smi_(smi), started_(clock_ns(CLOCK_MONOTONIC)) {}

    // Returns the number of GPUs.
    std::size_t find_gpus();
    void sample();
    void forget() {
        for (Gpu& gpu : gpus_) gpu.lock.forget();
    }

private:
    bool is_ours(Gpu& gpu);
    bool find_agent(Gpu& gpu);
    void look_for_agent(Gpu& gpu);
    void make_agent(Gpu& gpu) const;
    void read(Gpu& gpu);
    void set_throttling(const amd_smi::Metrics& now, const Gpu& gpu);

    const amd_smi::Interface& smi_;
    const std::uint64_t started_;
    std::vector<Gpu> gpus_;
    Gauges gauges_{"amd_smi", "GPU", kFirstCounter, gauges()};
    // The SDK's client is in this process: it registers the GPUs that the process uses, and no others are sampled.
    const bool has_client_ = dlsym(RTLD_DEFAULT, "rocprofiler_configure") != nullptr;
    bool has_agents_ = false;  // the SDK has registered GPUs
    std::unique_ptr<amd_smi::MetricsRoom> room_ = std::make_unique<amd_smi::MetricsRoom>();
};

std::size_t Smi::find_gpus() {
    std::uint32_t sockets = 0;
    if (smi_.init(amd_smi::kGpus) != 0 || smi_.socket_handles(&sockets, nullptr) != 0) return 0;
    std::vector<amd_smi::Socket> all(sockets);
    if (smi_.socket_handles(&sockets, all.data()) != 0) return 0;
    const Rank rank = rank_in(environment());
    for (const amd_smi::Socket socket : all) {
        std::uint32_t count = 0;
        if (smi_.processor_handles(socket, &count, nullptr) != 0) continue;
        std::vector<amd_smi::Processor> processors(count);
        if (smi_.processor_handles(socket, &count, processors.data()) != 0) continue;
        for (const amd_smi::Processor processor : processors) {
            amd_smi::Address address = 0;
            if (smi_.address(processor, &address) != 0) continue;
            const int number = static_cast<int>(gpus_.size());
            const bool first = rank.count_on_node <= 1 || number % rank.count_on_node == rank.on_node;
            gpus_.push_back({processor, address, NodeLock("smi-" + name_of(address)), first});
        }
    }
    return gpus_.size();
}

// Looks at what was registered since the last time only: a large program has registered 100,000 kernels.
void Smi::look_for_agent(Gpu& gpu) {
    const std::vector<Registration> rows = registrations().after(gpu.seen);
    gpu.seen += rows.size();
    for (const Registration& row : rows) {
        if (!is_gpu(row)) continue;
        has_agents_ = true;
        if (gpu.agent < 0 && is_at(row, gpu.address)) gpu.agent = std::get<std::int64_t>(row.cells[0]);
    }
}

void Smi::make_agent(Gpu& gpu) const {
    const std::int64_t number = &gpu - gpus_.data();
    gpu.agent = kFirstAgent + number;
    const std::string name = name_of(gpu.address);
    const std::string facts = "{\"domain\":" + std::to_string(gpu.address >> 16) +
                              ",\"location_id\":" + std::to_string(gpu.address & 0xffff) + "}";
    rocpd_agent_t agent{};
    agent.id = gpu.agent;
    agent.type = "GPU";
    agent.absolute_index = agent.logical_index = agent.type_index = number;
    agent.name = agent.user_name = name.c_str();
    agent.extdata = facts.c_str();
    rocpd_register_agent(&agent);
}

bool Smi::find_agent(Gpu& gpu) {
    if (gpu.agent >= 0) return true;
    look_for_agent(gpu);
    if (gpu.agent < 0 && (has_agents_ || has_client_)) return false;
    if (gpu.agent < 0) make_agent(gpu);
    gpu.source = gauges_.add_source(gpu.agent);
    return true;
}

bool Smi::is_ours(Gpu& gpu) {
    if (!gpu.first_choice && clock_ns(CLOCK_MONOTONIC) - started_ < kOthersAfter) return false;
    return find_agent(gpu) && gpu.lock.held();
}

// Residencies count up with the accumulation counter; between two samples, their share is what the GPU was throttled.
void Smi::set_throttling(const amd_smi::Metrics& now, const Gpu& gpu) {
    const amd_smi::Metrics& last = gpu.last;
    if (!gpu.has_last || now.accumulation_counter <= last.accumulation_counter) return;
    const double interval = known(now.accumulation_counter) - known(last.accumulation_counter);
    const auto share = [&](std::size_t gauge, std::uint64_t before, std::uint64_t after) {
        if (after >= before) gauges_.set(gauge, (known(after) - known(before)) * 100 / interval);
    };
    share(kThrottleProchot, last.prochot_residency_acc, now.prochot_residency_acc);
    share(kThrottlePower, last.ppt_residency_acc, now.ppt_residency_acc);
    share(kThrottleSocket, last.socket_thm_residency_acc, now.socket_thm_residency_acc);
    share(kThrottleVr, last.vr_thm_residency_acc, now.vr_thm_residency_acc);
    share(kThrottleHbm, last.hbm_thm_residency_acc, now.hbm_thm_residency_acc);
}

void Smi::read(Gpu& gpu) {
    const std::uint64_t time = now_ns();
    std::uint64_t bytes = 0;
    if (smi_.memory_usage(gpu.handle, amd_smi::kVram, &bytes) == 0) gauges_.set(kMemory, known(bytes) / 1e6);
    std::memset(static_cast<void*>(room_.get()), 0xff, sizeof room_->metrics);  // older versions know fewer fields
    if (smi_.metrics(gpu.handle, room_.get()) == 0) {
        const amd_smi::Metrics& m = room_->metrics;
        gauges_.set(kBusyGfx, known(m.average_gfx_activity));
        gauges_.set(kBusyUmc, known(m.average_umc_activity));
        gauges_.set(kBusyMm, first_of(known(m.average_mm_activity), largest_of(m.vcn_activity, 4), true));
        gauges_.set(kPower, first_of(known(m.current_socket_power), known(m.average_socket_power)));
        gauges_.set(kTemperature, first_of(known(m.temperature_hotspot), known(m.temperature_edge)));
        gauges_.set(kTemperatureMemory, first_of(known(m.temperature_mem), largest_of(m.temperature_hbm, 4)));
        gauges_.set(kGfxClock, first_of(largest_of(m.current_gfxclks, 8), known(m.current_gfxclk)));
        gauges_.set(kMemoryClock, known(m.current_uclk));
        gauges_.set(kThrottle, first_of(known(m.indep_throttle_status), known(m.throttle_status), true));
        gauges_.set(kPcieWidth, known(m.pcie_link_width));
        gauges_.set(kPcieSpeed, pcie_speed(known(m.pcie_link_speed)));
        gauges_.set(kPcieAccumulated, known(m.pcie_bandwidth_acc));
        gauges_.set(kPcieNow, known(m.pcie_bandwidth_inst) * 1e9);
        gauges_.set(kXgmiWidth, known(m.xgmi_link_width));
        gauges_.set(kXgmiSpeed, known(m.xgmi_link_speed) * 1000);
        gauges_.set(kXgmiRead, sum_of(m.xgmi_read_data_acc, 8));
        gauges_.set(kXgmiWritten, sum_of(m.xgmi_write_data_acc, 8));
        set_throttling(m, gpu);
        gpu.last = m;
        gpu.has_last = true;
    }
    gauges_.record(gpu.source, time);
}

void Smi::sample() {
    for (Gpu& gpu : gpus_)
        if (is_ours(gpu)) read(gpu);
}

Smi* g_smi = nullptr;  // of the thread of this process; never deleted, a forked child forgets it

void sample_gpus() {
    const amd_smi::Interface* library = amd_smi::load();
    auto* smi = library != nullptr ? new Smi(*library) : nullptr;
    if (smi == nullptr || smi->find_gpus() == 0) {
        // One process says it for all of the node.
        static NodeLock lock("smi-missing");
        if (lock.held())
            say(std::string(smi == nullptr ? "no libamd_smi" : "libamd_smi finds no GPU") +
                ": no GPU is sampled; rocpd doctor says more");
        return;
    }
    g_smi = smi;
    for (Pace pace(config().smi_hz); pace.wait();)
        if (g_state.recording.load(std::memory_order_relaxed)) smi->sample();
}

SamplingThread g_thread("rocpd-smi", sample_gpus);

}  // namespace

void start_smi() {
    if (config().smi_hz > 0) g_thread.start();
}

// A child samples no GPU: libamd_smi is in an unknown state in it, and its parent goes on.
void forget_smi() {
    if (g_smi != nullptr) g_smi->forget();
}

}  // namespace rocpd
