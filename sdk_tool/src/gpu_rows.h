// Rows of GPU work and of the calls that launch it: dispatches, copies, allocations, counters and samples, API
// regions with their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "entry.h"
#include "referenced_rows.h"
#include "tables.h"
#include "thread_buffer.h"

namespace rocpd {

class GpuRows {
public:
    GpuRows(Tables& tables, ReferencedRows& referenced);

    void region(ThreadBuffer& thread, const Head& entry);
    void dispatch(ThreadBuffer& thread, const Head& entry);
    void copy(ThreadBuffer& thread, const Head& entry);
    void allocation(ThreadBuffer& thread, const Head& entry);
    void graph_launch(ThreadBuffer& thread, const Head& entry);
    void sample(const Head& entry);
    void samples(const Head& entry);
    void counter(const Head& entry);

    // Writes counter values whose dispatch never came.
    void end_all();

private:
    void value_on_track(const Value& value, std::uint64_t time, std::int64_t event);
    std::uint32_t thread_of(const rocpd_event_t& event, const ThreadBuffer& thread);
    std::int64_t event_of(const rocpd_event_t& event, std::string_view message);
    void arguments(const char* at, std::size_t count, std::int64_t event);
    void refer_to(std::int64_t agent, std::int64_t queue, std::int64_t stream);
    void remember(std::int64_t dispatch, std::int64_t event);
    std::int64_t event_of_dispatch(std::int64_t dispatch) const;

    Tables& tables_;
    ReferencedRows& referenced_;
    // Event ids of dispatches, which counter values refer to, in two generations: long runs forget the older one.
    std::unordered_map<std::int64_t, std::int64_t> young_, old_;
    // Values that came before their dispatch.
    std::unordered_map<std::int64_t, std::vector<std::pair<std::int64_t, double>>> early_;
    std::size_t early_values_ = 0;
    std::string json_;
    const std::uint32_t sample_;  // text
};

}  // namespace rocpd
