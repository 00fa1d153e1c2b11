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
      track_(texts().number("Python call stack")),
      native_track_(texts().number("Call stack")) {}

void Stacks::put(std::uint64_t tid, std::uint64_t time, std::uint32_t track, const StackEvent& event) {
    if (events_.size() > kMostStacks) events_.clear();
    std::string whole(event.call_stack);
    whole.append(event.line_info).append(event.extdata);
    const auto [known, is_new] = events_.try_emplace(std::move(whole));
    if (is_new) known->second = tables_.stack_event(category_, event);
    tables_.sample(referenced_.track_of_thread(static_cast<std::uint32_t>(tid), track), time, known->second);
}

void Stacks::sample(const Head& entry) {
    const auto tid = body<std::uint64_t>(entry);
    put(tid, entry.time, track_, {text_of(entry).substr(sizeof tid), "{}", "{}"});
}

void Stacks::native_sample(const Head& entry) {
    const auto head = body<SampledStack>(entry);
    const std::string_view texts = text_of(entry).substr(sizeof head);
    const std::string clock = head.is_wall != 0 ? "wall_ns" : "cpu_ns";
    const std::string extdata = "{\"" + clock + "\": " + std::to_string(head.stands_for) + "}";
    put(head.thread, entry.time, native_track_,
        {texts.substr(0, head.frames_size), texts.substr(head.frames_size), extdata});
}

}  // namespace rocpd
