// Ranges and marks: nesting, stack ids, ends that are read before their starts, ranges that never end.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "entry.h"
#include "referenced_rows.h"
#include "tables.h"
#include "thread_buffer.h"

namespace rocpd {

class Ranges {
public:
    Ranges(Tables& tables, ReferencedRows& referenced);

    void push(ThreadBuffer& thread, const Head& entry);
    void pop(ThreadBuffer& thread, const Head& entry);
    void begin(ThreadBuffer& thread, const Head& entry);
    void end(const Head& entry);
    void mark(ThreadBuffer& thread, const Head& entry);
    void mark_as(ThreadBuffer& thread, const Head& entry);
    void name_thread(ThreadBuffer& thread, std::string_view name);

    // Ends the ranges that a thread left open.
    void end_thread(ThreadBuffer& thread, std::uint64_t time);
    // Ends the ranges that are still open.
    void end_all(std::uint64_t time);
    // Writes down which ranges are open.
    void show_open(const std::vector<ThreadBuffer*>& threads) const;
    // To be called when all rings have been emptied once more: drops ends whose start did not come in this round.
    void forget_strays();

private:
    struct Stray {
        std::uint64_t time;
        unsigned round;
    };

    Timeline& timeline(ThreadBuffer& thread);
    Open opened(ThreadBuffer& thread, const Timeline& line, std::uint64_t time);
    Open opened_as(ThreadBuffer& thread, const Head& entry, const Begun& begun);
    std::int64_t event_of(const Open& range, bool unfinished);
    void write(const Open& range, std::uint64_t end, bool unfinished);
    void write_mark(const Open& mark);

    Tables& tables_;
    ReferencedRows& referenced_;
    std::unordered_map<std::uint64_t, Open> begun_;   // by number
    std::unordered_map<std::uint64_t, Stray> ended_;  // ends that were read before their start
    unsigned round_ = 0;
    std::string json_;
    const std::uint32_t ranges_, thread_range_, process_range_;  // texts
};

// The next stack id of a range or mark.
extern std::atomic<std::uint64_t> g_next_stack;

}  // namespace rocpd
