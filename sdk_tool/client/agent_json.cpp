#include "agent_json.h"

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "json.h"

namespace rocpd::client {
namespace {

struct BitField {
    const char* name;
    unsigned bits;
};

// Fields of a 32-bit word, from the lowest bit on. The SDK takes their names from hsakmttypes.h.
const std::initializer_list<BitField> kSdmaVersion = {{"uCodeSDMA", 10}, {"uCodeRes", 10}};
const std::initializer_list<BitField> kVersion = {{"uCode", 10}, {"Major", 6}, {"Minor", 8}, {"Stepping", 8}};
const std::initializer_list<BitField> kCapability = {
    {"HotPluggable", 1}, {"HSAMMUPresent", 1}, {"SharedWithGraphics", 1}, {"QueueSizePowerOfTwo", 1},
    {"QueueSize32bit", 1}, {"QueueIdleEvent", 1}, {"VALimit", 1}, {"WatchPointsSupported", 1},
    {"WatchPointsTotalBits", 4}, {"DoorbellType", 2}, {"AQLQueueDoubleMap", 1}, {"DebugTrapSupported", 1},
    {"WaveLaunchTrapOverrideSupported", 1}, {"WaveLaunchModeSupported", 1}, {"PreciseMemoryOperationsSupported", 1},
    {"DEPRECATED_SRAM_EDCSupport", 1}, {"Mem_EDCSupport", 1}, {"RASEventNotify", 1}, {"ASICRevision", 4},
    {"SRAM_EDCSupport", 1}, {"SVMAPISupported", 1}, {"CoherentHostAccess", 1}, {"DebugSupportedFirmware", 1}};
const std::initializer_list<BitField> kMemoryFlags = {{"HotPluggable", 1}, {"NonVolatile", 1}};
const std::initializer_list<BitField> kCacheType = {{"Data", 1}, {"Instruction", 1}, {"CPU", 1}, {"HSACU", 1}};
const std::initializer_list<BitField> kLinkFlags = {{"Override", 1}, {"NonCoherent", 1}, {"NoAtomics32bit", 1},
                                                    {"NoAtomics64bit", 1}, {"NoPeerToPeerDMA", 1}};
const std::initializer_list<BitField> kVisibility = {{"hsa", 1}, {"hip", 1}, {"rccl", 1}, {"rocdecode", 1}};

// The word may be declared as a number, an enumeration or a union of bit fields.
template <typename Word>
std::uint32_t number_of(const Word& word) {
    std::uint32_t number = 0;
    static_assert(sizeof word == sizeof number);
    std::memcpy(&number, &word, sizeof number);
    return number;
}

template <typename Word>
std::string split(const Word& word, std::initializer_list<BitField> fields) {
    Json json;
    std::uint32_t rest = number_of(word);
    for (const BitField& field : fields) {
        json.add(field.name, rest & ((1u << field.bits) - 1));
        rest >>= field.bits;
    }
    return json.text();
}

std::string three(const rocprofiler_dim3_t& size) {
    return Json().add("x", size.x).add("y", size.y).add("z", size.z).text();
}

std::string bytes(const rocprofiler_uuid_t& uuid) {
    static_assert(sizeof uuid == 16);
    unsigned char value[sizeof uuid];
    std::memcpy(value, &uuid, sizeof uuid);
    Json json;
    for (std::size_t i = 0; i < sizeof value; ++i) json.add("value" + std::to_string(i), unsigned{value[i]});
    return Json().add_json("bytes", json.text()).text();
}

std::string one(const rocprofiler_agent_mem_bank_t& bank) {
    Json json;
    json.add("heap_type", number_of(bank.heap_type)).add_json("flags", split(bank.flags, kMemoryFlags));
    json.add("width", bank.width).add("mem_clk_max", bank.mem_clk_max).add("size_in_bytes", bank.size_in_bytes);
    return json.text();
}

std::string one(const rocprofiler_agent_cache_t& cache) {
    Json json;
    json.add("processor_id_low", cache.processor_id_low).add("size", cache.size).add("level", cache.level);
    json.add("cache_line_size", cache.cache_line_size).add("cache_lines_per_tag", cache.cache_lines_per_tag);
    json.add("association", cache.association).add("latency", cache.latency);
    return json.add_json("type", split(cache.type, kCacheType)).text();
}

std::string one(const rocprofiler_agent_io_link_t& link) {
    Json json;
    json.add("type", number_of(link.type)).add("version_major", link.version_major);
    json.add("version_minor", link.version_minor).add("node_from", link.node_from).add("node_to", link.node_to);
    json.add("weight", link.weight).add("min_latency", link.min_latency).add("max_latency", link.max_latency);
    json.add("min_bandwidth", link.min_bandwidth).add("max_bandwidth", link.max_bandwidth);
    json.add("recommended_transfer_size", link.recommended_transfer_size);
    return json.add_json("flags", split(link.flags, kLinkFlags)).text();
}

template <typename Item>
std::string all(const Item* items, std::uint32_t count) {
    Json json('[');
    for (std::uint32_t i = 0; items != nullptr && i < count; ++i) json.add_json("", one(items[i]));
    return json.text();
}

#define ROCPD_ADD(MEMBER) json.add(#MEMBER, a.MEMBER)

void add_units(Json& json, const rocprofiler_agent_v0_t& a) {
    ROCPD_ADD(cpu_cores_count);
    ROCPD_ADD(simd_count);
    ROCPD_ADD(mem_banks_count);
    ROCPD_ADD(caches_count);
    ROCPD_ADD(io_links_count);
    ROCPD_ADD(cpu_core_id_base);
    ROCPD_ADD(simd_id_base);
    ROCPD_ADD(max_waves_per_simd);
    ROCPD_ADD(lds_size_in_kb);
    ROCPD_ADD(gds_size_in_kb);
    ROCPD_ADD(num_gws);
    ROCPD_ADD(wave_front_size);
    ROCPD_ADD(num_xcc);
    ROCPD_ADD(cu_count);
    ROCPD_ADD(array_count);
    ROCPD_ADD(num_shader_banks);
    ROCPD_ADD(simd_arrays_per_engine);
    ROCPD_ADD(cu_per_simd_array);
    ROCPD_ADD(simd_per_cu);
    ROCPD_ADD(max_slots_scratch_cu);
}

void add_device(Json& json, const rocprofiler_agent_v0_t& a) {
    ROCPD_ADD(gfx_target_version);
    ROCPD_ADD(vendor_id);
    ROCPD_ADD(device_id);
    ROCPD_ADD(location_id);
    ROCPD_ADD(domain);
    ROCPD_ADD(drm_render_minor);
    ROCPD_ADD(num_sdma_engines);
    ROCPD_ADD(num_sdma_xgmi_engines);
    ROCPD_ADD(num_sdma_queues_per_engine);
    ROCPD_ADD(num_cp_queues);
    ROCPD_ADD(max_engine_clk_ccompute);
    ROCPD_ADD(max_engine_clk_fcompute);
    json.add_json("sdma_fw_version", split(a.sdma_fw_version, kSdmaVersion));
    json.add_json("fw_version", split(a.fw_version, kVersion));
    json.add_json("capability", split(a.capability, kCapability));
}

void add_limits(Json& json, const rocprofiler_agent_v0_t& a) {
    ROCPD_ADD(cu_per_engine);
    ROCPD_ADD(max_waves_per_cu);
    ROCPD_ADD(family_id);
    ROCPD_ADD(workgroup_max_size);
    ROCPD_ADD(grid_max_size);
    ROCPD_ADD(local_mem_size);
    ROCPD_ADD(hive_id);
    ROCPD_ADD(gpu_id);
    json.add_json("workgroup_max_dim", three(a.workgroup_max_dim)).add_json("grid_max_dim", three(a.grid_max_dim));
}

void add_names(Json& json, const rocprofiler_agent_v0_t& a) {
    ROCPD_ADD(name);
    ROCPD_ADD(vendor_name);
    ROCPD_ADD(product_name);
    ROCPD_ADD(model_name);
    ROCPD_ADD(node_id);
    ROCPD_ADD(logical_node_id);
    ROCPD_ADD(logical_node_type_id);
    json.add_json("runtime_visibility", split(a.runtime_visibility, kVisibility)).add_json("uuid", bytes(a.uuid));
}

#undef ROCPD_ADD

}  // namespace

std::string agent_json(const rocprofiler_agent_v0_t& a) {
    Json json;
    json.add("size", a.size).add_json("id", Json().add("handle", a.id.handle).text());
    json.add("type", static_cast<int>(a.type));
    add_units(json, a);
    add_device(json, a);
    add_limits(json, a);
    add_names(json, a);
    json.add_json("mem_banks", all(a.mem_banks, a.mem_banks_count));
    json.add_json("caches", all(a.caches, a.caches_count));
    json.add_json("io_links", all(a.io_links, a.io_links_count));
    // rocprofv3's own number of a GPU, which no field of the SDK has.
    const bool gpu = a.type == ROCPROFILER_AGENT_TYPE_GPU;
    return json.add("gpu_index", gpu ? a.logical_node_type_id : -1).text();
}

}  // namespace rocpd::client
