// Sampled call stacks, on the writer's side: equal stacks share an event.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "entry.h"
#include "referenced_rows.h"
#include "tables.h"

namespace rocpd {

class Stacks {
public:
    Stacks(Tables& tables, ReferencedRows& referenced);

    void sample(const Head& entry);
    void native_sample(const Head& entry);

private:
    void put(std::uint64_t tid, std::uint64_t time, std::uint32_t track, const StackEvent& event);

    Tables& tables_;
    ReferencedRows& referenced_;
    std::unordered_map<std::string, std::int64_t> events_;  // by stack
    const std::uint32_t category_, track_, native_track_;   // texts
};

}  // namespace rocpd
