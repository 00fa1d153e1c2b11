// Values that are read together and often: a counter and a track for each, one event for all of a reading.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "entry.h"

namespace rocpd {

struct Gauge {
    const char* name;         // of its counter, and of its track
    const char* units;
    const char* value_type;   // as of rocpd_counter_t
    const char* description;
};

// Names are those of rocprofiler-systems where it has them. Sources of one kind, such as GPUs, share the tracks; whose
// a value is, its counter says.
class Gauges {
public:
    // `category` is that of the events; the ids of the counters start at `first_id`.
    Gauges(const char* category, const char* target, std::int64_t first_id, const std::vector<Gauge>& gauges)
        : category_(category), target_(target), first_id_(first_id), gauges_(gauges) {}

    // Adds a source, whose agent is `agent`, -1 for none. Returns its number.
    std::size_t add_source(std::int64_t agent);

    void set(std::size_t gauge, double value) { values_.push_back({gauge, value}); }
    // Records what was set since the last time as read from a source at `time` [ns]; values that are no numbers are
    // not.
    void record(std::size_t source, std::uint64_t time);

private:
    struct Reading {
        std::size_t gauge;
        double value;
    };
    std::int64_t counter(std::size_t source, std::size_t gauge) const {
        return first_id_ + static_cast<std::int64_t>(source * 64 + gauge);
    }

    const char* category_;
    const char* target_;  // "CPU" or "GPU"
    std::int64_t first_id_;
    const std::vector<Gauge>& gauges_;
    std::uint32_t category_text_ = 0;
    std::vector<std::int64_t> tracks_, agents_;  // 0: not yet made
    std::vector<std::vector<bool>> described_;   // by source and gauge
    std::vector<Reading> values_;
    std::vector<Value> entry_;
};

// A value that the GPU or the kernel does not know, as SMI writes it.
template <typename T>
double known(T value) {
    return value == static_cast<T>(-1) ? NAN : static_cast<double>(value);
}

}  // namespace rocpd
