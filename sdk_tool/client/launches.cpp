#include "launches.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace rocpd::client {
namespace {

// Records that never come (their context was stopped, the queue was destroyed) must not fill the memory in long runs.
constexpr std::size_t kGeneration = 32768;

struct Pending {
    Launch launch;
    std::uint32_t records = 0;  // still to come
};

// A part of the table. Generations: when the younger one is full, the older one is forgotten.
class Shard {
public:
    void remember(std::uint64_t correlation, const Launch& launch) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (young_.size() >= kGeneration) {
            old_.swap(young_);
            young_.clear();
        }
        Pending& pending = young_[correlation];
        pending.launch = launch;
        ++pending.records;
    }

    Launch take(std::uint64_t correlation) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Map* map : {&young_, &old_}) {
            const auto found = map->find(correlation);
            if (found == map->end()) continue;
            const Launch launch = found->second.launch;
            if (--found->second.records == 0) map->erase(found);
            return launch;
        }
        return {};
    }

private:
    using Map = std::unordered_map<std::uint64_t, Pending>;
    std::mutex mutex_;
    Map young_, old_;
};

// Launching threads seldom meet: consecutive ids are in different shards.
Shard& shard(std::uint64_t correlation) {
    static auto& only = *new std::array<Shard, 16>;
    return only[correlation % only.size()];
}

}  // namespace

void remember_launch(std::uint64_t correlation) {
    shard(correlation).remember(correlation, {current_marker(), current_stream()});
}

Launch take_launch(std::uint64_t correlation) { return shard(correlation).take(correlation); }

}  // namespace rocpd::client
