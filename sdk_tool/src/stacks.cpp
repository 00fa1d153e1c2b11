#include "stacks.h"

#include "lifecycle.h"
#include "texts.h"

namespace rocpd {
namespace {

constexpr std::size_t kMostStacks = 1 << 16;  // remembered: bounds the memory of runs that take days

}  // namespace

Stacks::Stacks(Tables& tables, ReferencedRows& referenced)
    : tables_(tables),
      referenced_(referenced),
      category_(texts().number("timer_sampling")),
      track_(texts().number("Python call stack")) {}

void Stacks::sample(const Head& entry) {
    const auto tid = body<std::uint64_t>(entry);
    const std::string_view whole = text_of(entry);
    const std::string stack(whole.substr(sizeof tid));
    if (events_.size() > kMostStacks) events_.clear();
    const auto [known, is_new] = events_.try_emplace(stack);
    if (is_new) known->second = tables_.stack_event(category_, stack);
    const std::int64_t track = referenced_.track_of_thread(static_cast<std::uint32_t>(tid), track_);
    tables_.sample(track, entry.time, known->second);
}

}  // namespace rocpd
