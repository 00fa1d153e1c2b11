#include "gauges.h"

#include <cstring>

#include "recording.h"
#include "rocpd/recorder.h"

namespace rocpd {

std::size_t Gauges::add_source(std::int64_t agent) {
    agents_.push_back(agent);
    described_.emplace_back(gauges_.size());
    return agents_.size() - 1;
}

void Gauges::record(std::size_t source, std::uint64_t time) {
    entry_.clear();
    tracks_.resize(gauges_.size());
    if (category_text_ == 0) category_text_ = rocpd_text(category_, std::strlen(category_));
    for (const Reading& reading : values_) {
        if (!std::isfinite(reading.value)) continue;
        const Gauge& gauge = gauges_[reading.gauge];
        const std::int64_t id = counter(source, reading.gauge);
        // Described once they have a value: not every GPU knows everything.
        if (tracks_[reading.gauge] == 0) tracks_[reading.gauge] = rocpd_register_track(gauge.name);
        if (!described_[source][reading.gauge]) {
            rocpd_counter_t described{};
            described.id = id;
            described.agent_id = agents_[source];
            described.target_arch = target_;
            described.name = gauge.name;
            described.description = gauge.description;
            described.component = "librocpd-recorder";
            described.units = gauge.units;
            described.value_type = gauge.value_type;
            rocpd_register_counter(&described);
            described_[source][reading.gauge] = true;
        }
        entry_.push_back({tracks_[reading.gauge], id, reading.value});
    }
    values_.clear();
    if (entry_.empty() || !is_recording()) return;
    Turn turn;
    if (!turn) return;
    const std::size_t size = entry_.size() * sizeof(Value);
    const std::uint64_t category = category_text_;
    turn.put(kSamples, time, sizeof category + size, [&](char* at) {
        std::memcpy(at, &category, sizeof category);
        append(at + sizeof category, entry_.data(), size);
    });
}

}  // namespace rocpd
