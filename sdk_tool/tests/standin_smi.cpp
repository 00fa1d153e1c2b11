// A libamd_smi of two GPUs of two sockets: the first knows everything, the second little. Each reading counts up.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "amd_smi.h"

using namespace rocpd::amd_smi;

namespace {

int g_gpus[2] = {0, 1};
std::uint64_t g_readings[2] = {0, 0};

}  // namespace

extern "C" {

int amdsmi_init(std::uint64_t what) { return what == kGpus && std::getenv("STANDIN_SMI_FAILS") == nullptr ? 0 : 1; }

int amdsmi_get_socket_handles(std::uint32_t* count, Socket* sockets) {
    *count = 2;
    for (int i = 0; sockets != nullptr && i < 2; ++i) sockets[i] = &g_gpus[i];
    return 0;
}

int amdsmi_get_processor_handles(Socket socket, std::uint32_t* count, Processor* processors) {
    *count = 1;
    if (processors != nullptr) processors[0] = socket;
    return 0;
}

int amdsmi_get_gpu_device_bdf(Processor processor, Address* address) {
    const char* chosen = std::getenv("STANDIN_SMI_ADDRESS");  // of the first
    const Address first = chosen != nullptr ? std::strtoull(chosen, nullptr, 0) : 0xc100;
    *address = *static_cast<int*>(processor) == 0 ? first : 0x10000 | 0x2308;  // 0000:c1:00.0, 0001:23:01.0
    return 0;
}

int amdsmi_get_gpu_metrics_info(Processor processor, MetricsRoom* room) {
    const int gpu = *static_cast<int*>(processor);
    const std::uint64_t reading = ++g_readings[gpu];
    std::memset(room, 0xff, sizeof room->metrics);
    Metrics& m = room->metrics;
    m.average_gfx_activity = static_cast<std::uint16_t>(40 + gpu);
    m.average_socket_power = static_cast<std::uint16_t>(300 + gpu);
    m.temperature_edge = 50;
    m.pcie_link_speed = 4;  // a generation
    if (gpu == 1) return 0;
    m.temperature_hotspot = 71;
    m.average_umc_activity = 12;
    m.vcn_activity[1] = 5;
    m.current_socket_power = 555;
    m.temperature_hbm[0] = 60;
    m.temperature_hbm[2] = 62;
    m.current_gfxclks[0] = 1900;
    m.current_gfxclks[3] = 2100;
    m.current_uclk = 1300;
    m.throttle_status = 3;
    m.pcie_link_width = 16;
    m.pcie_link_speed = 320;
    m.pcie_bandwidth_acc = 1000 * reading;
    m.pcie_bandwidth_inst = 18;
    m.xgmi_link_width = 16;
    m.xgmi_link_speed = 32;
    m.xgmi_read_data_acc[0] = 10 * reading;
    m.xgmi_read_data_acc[5] = reading;
    m.accumulation_counter = 1000 * reading;
    m.ppt_residency_acc = 250 * reading;
    m.hbm_thm_residency_acc = 0;
    return 0;
}

int amdsmi_get_gpu_memory_usage(Processor processor, int kind, std::uint64_t* bytes) {
    if (kind != kVram) return 1;
    *bytes = *static_cast<int*>(processor) == 0 ? 5000000000u : 7000000u;
    return 0;
}

}  // extern "C"
