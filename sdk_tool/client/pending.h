// Keeps what is known during a call only, until the record of the call or of its work comes.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "forks.h"

namespace rocpd::client {

// By internal correlation id. Threads seldom meet: consecutive ids are in different shards. Records that never come
// (their context was stopped, the queue was destroyed) must not fill the memory in long runs: there are two
// generations, and when the younger one is full, the older one is forgotten.
template <typename Known>
class Pending {
public:
    // Keeps what is known for one record. For further records of the same call, what was known for the first one
    // counts.
    void keep(std::uint64_t correlation, Known known) { shard(correlation).keep(correlation, std::move(known)); }

    // Returns it for one record; called once for each record of a call that launched several operations. `number` says
    // how many were taken before.
    Known take(std::uint64_t correlation, std::uint64_t& number) {
        return shard(correlation).take(correlation, number);
    }
    Known take(std::uint64_t correlation) {
        std::uint64_t number = 0;
        return take(correlation, number);
    }

private:
    static constexpr std::size_t kGeneration = 32768;

    struct Entry {
        Known known;
        std::uint32_t records = 0;  // still to come
        std::uint32_t taken = 0;
    };

    class Shard {
    public:
        void keep(std::uint64_t correlation, Known known) {
            const std::lock_guard<ForkMutex> lock(mutex_);
            if (young_.size() >= kGeneration) {
                old_.swap(young_);
                young_.clear();
            }
            const auto [entry, fresh] = young_.try_emplace(correlation);
            if (fresh) entry->second.known = std::move(known);
            ++entry->second.records;
        }
        Known take(std::uint64_t correlation, std::uint64_t& number) {
            const std::lock_guard<ForkMutex> lock(mutex_);
            for (auto* map : {&young_, &old_}) {
                const auto found = map->find(correlation);
                if (found == map->end()) continue;
                number = found->second.taken++;
                if (--found->second.records > 0) return found->second.known;
                Known known = std::move(found->second.known);
                map->erase(found);
                return known;
            }
            return {};
        }

    private:
        ForkMutex mutex_;
        std::unordered_map<std::uint64_t, Entry> young_, old_;
    };

    Shard& shard(std::uint64_t correlation) { return shards_[correlation % shards_.size()]; }

    std::array<Shard, 16> shards_;
};

}  // namespace rocpd::client
