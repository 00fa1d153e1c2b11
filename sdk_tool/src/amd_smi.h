// The part of libamd_smi's C interface that is used: the same in its versions 24 (ROCm 6.3) to 26 (ROCm 7).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocpd::amd_smi {

using Socket = void*;
using Processor = void*;

constexpr std::uint64_t kGpus = 2;  // AMDSMI_INIT_AMD_GPUS
constexpr int kVram = 0;            // AMDSMI_MEM_TYPE_VRAM

// amdsmi_gpu_metrics_t up to what is used; newer versions append. A field of all ones is not known.
struct Metrics {
    std::uint16_t structure_size;
    std::uint8_t format_revision, content_revision;
    std::uint16_t temperature_edge, temperature_hotspot, temperature_mem;  // [°C]
    std::uint16_t temperature_vrgfx, temperature_vrsoc, temperature_vrmem;
    std::uint16_t average_gfx_activity, average_umc_activity, average_mm_activity;  // [%]
    std::uint16_t average_socket_power;                                             // [W]
    std::uint64_t energy_accumulator, system_clock_counter;
    std::uint16_t average_gfxclk, average_socclk, average_uclk;  // [MHz]
    std::uint16_t average_vclk0, average_dclk0, average_vclk1, average_dclk1;
    std::uint16_t current_gfxclk, current_socclk, current_uclk;  // [MHz]
    std::uint16_t current_vclk0, current_dclk0, current_vclk1, current_dclk1;
    std::uint32_t throttle_status;  // bits
    std::uint16_t current_fan_speed;
    std::uint16_t pcie_link_width;  // lanes
    std::uint16_t pcie_link_speed;  // [0.1 GT/s], up to 6 the generation of PCIe
    std::uint32_t gfx_activity_acc, mem_activity_acc;
    std::uint16_t temperature_hbm[4];
    std::uint64_t firmware_timestamp;
    std::uint16_t voltage_soc, voltage_gfx, voltage_mem;
    std::uint64_t indep_throttle_status;  // bits
    std::uint16_t current_socket_power;   // [W]
    std::uint16_t vcn_activity[4];        // [%]
    std::uint32_t gfxclk_lock_status;
    std::uint16_t xgmi_link_width, xgmi_link_speed;              // [Gbps]
    std::uint64_t pcie_bandwidth_acc, pcie_bandwidth_inst;       // a count without a unit, [GB/s]
    std::uint64_t pcie_l0_to_recov_count_acc, pcie_replay_count_acc, pcie_replay_rover_count_acc;
    std::uint64_t xgmi_read_data_acc[8], xgmi_write_data_acc[8];  // [KB]
    std::uint16_t current_gfxclks[8], current_socclks[4], current_vclk0s[4], current_dclk0s[4];
    std::uint16_t jpeg_activity[32];
    std::uint32_t pcie_nak_sent_count_acc, pcie_nak_rcvd_count_acc;
    std::uint64_t accumulation_counter;  // what the residencies count in
    std::uint64_t prochot_residency_acc, ppt_residency_acc, socket_thm_residency_acc;
    std::uint64_t vr_thm_residency_acc, hbm_thm_residency_acc;
};

// What the library writes may be longer than what this version knows.
union MetricsRoom {
    Metrics metrics;
    char room[64 << 10];
};

// The address of a GPU on its bus: function 3 bits, device 5, bus 8, domain 48.
using Address = std::uint64_t;

// Each returns 0 on success.
struct Interface {
    int (*init)(std::uint64_t what);
    int (*socket_handles)(std::uint32_t* count, Socket* sockets);
    int (*processor_handles)(Socket socket, std::uint32_t* count, Processor* processors);
    int (*address)(Processor processor, Address* address);
    int (*metrics)(Processor processor, MetricsRoom* metrics);
    int (*memory_usage)(Processor processor, int kind, std::uint64_t* bytes);
};

// Loads the library once. Returns nullptr where there is none, or one without these functions.
const Interface* load();

}  // namespace rocpd::amd_smi
