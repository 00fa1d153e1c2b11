// The things that the program registered for events to refer to (agents, queues, kernels …), as rows for the writer.
//
// They are kept for the life of the process: a forked child writes them into its own file again.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rocpd {

// A table that is written one row at a time, with its columns.
struct Table {
    const char* name;
    const char* columns;  // comma-separated
};

using Cell = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

struct Registration {
    const Table* table;
    std::vector<Cell> cells;
};

inline constexpr Table kMetadata{"rocpd_metadata", "tag, value"};
inline constexpr Table kNode{
    "rocpd_info_node", "id, hash, machine_id, system_name, hostname, release, version, hardware_name, domain_name"};
inline constexpr Table kProcess{"rocpd_info_process",
                                "id, nid, ppid, pid, init, start, command, environment, extdata"};
inline constexpr Table kThreadTable{"rocpd_info_thread", "id, nid, ppid, pid, tid, name, start"};
inline constexpr Table kAgent{"rocpd_info_agent",
                              "id, type, absolute_index, logical_index, type_index, uuid, name, model_name, "
                              "vendor_name, product_name, user_name, extdata, nid, pid"};
inline constexpr Table kQueue{"rocpd_info_queue", "id, name, nid, pid"};
inline constexpr Table kStream{"rocpd_info_stream", "id, name, nid, pid"};
inline constexpr Table kCodeObject{
    "rocpd_info_code_object", "id, agent_id, uri, load_base, load_size, load_delta, storage_type, extdata, nid, pid"};
inline constexpr Table kSymbol{"rocpd_info_kernel_symbol",
                               "id, code_object_id, kernel_name, display_name, kernel_object, kernarg_segment_size, "
                               "kernarg_segment_alignment, group_segment_size, private_segment_size, sgpr_count, "
                               "arch_vgpr_count, accum_vgpr_count, extdata, nid, pid"};
inline constexpr Table kPmc{"rocpd_info_pmc",
                            "id, agent_id, target_arch, event_code, instance_id, name, symbol, description, component, "
                            "units, value_type, block, expression, is_constant, is_derived, extdata, nid, pid"};
inline constexpr Table kTrack{"rocpd_track", "id, name_id, nid, pid"};
inline constexpr Table kThreadTrack{"rocpd_track", "id, name_id, tid, nid, pid"};

// The next id of a track.
inline std::atomic<std::int64_t> g_next_track{1};

class Registrations {
public:
    // Adds a row; it replaces an earlier one with the same first column. A row that is there already changes nothing:
    // programs name the same stream at each step.
    void add(const Table& table, std::vector<Cell> cells) {
        if (&table == &kPmc) has_counters_.store(true, std::memory_order_release);
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto [known, fresh] = latest_.try_emplace({&table, key(cells.front())}, rows_.size());
        if (!fresh && rows_[known->second].cells == cells) return;
        known->second = rows_.size();
        rows_.push_back({&table, std::move(cells)});
    }
    // Returns the rows after the first `known`, in the order of their registration.
    std::vector<Registration> after(std::size_t known) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (known >= rows_.size()) return {};
        return {rows_.begin() + static_cast<std::ptrdiff_t>(known), rows_.end()};
    }
    // Whether a counter was ever added.
    bool has_counters() const { return has_counters_.load(std::memory_order_acquire); }
    std::mutex& mutex() { return mutex_; }

private:
    static std::string key(const Cell& first) {
        const auto* id = std::get_if<std::int64_t>(&first);
        return id != nullptr ? std::to_string(*id) : std::get<std::string>(first);
    }

    std::mutex mutex_;
    std::atomic<bool> has_counters_{false};
    std::vector<Registration> rows_;
    std::map<std::pair<const Table*, std::string>, std::size_t> latest_;
};

}  // namespace rocpd
