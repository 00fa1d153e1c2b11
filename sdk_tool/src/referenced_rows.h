// The rows that events refer to, on the writer's side: each text, thread, agent, queue … is in the file before
// an event that names it is committed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "registrations.h"
#include "tables.h"

namespace rocpd {

class ReferencedRows {
public:
    explicit ReferencedRows(Tables& tables) : tables_(tables) {}

    // Writes the texts and rows that were registered since the last call.
    void write_new();

    // Each makes sure that there is a row; an id that was never registered gets a plain name.
    void thread(std::uint32_t tid, Cell began);
    void agent(std::int64_t id);
    void queue(std::int64_t id) { plain(kQueue, id, "Queue"); }
    void stream(std::int64_t id) { plain(kStream, id, "Stream"); }
    void code_object(std::int64_t id);
    void kernel(std::int64_t id);
    void counter(std::int64_t id);
    void track(std::int64_t id);
    // Returns the id of the thread's track of this name, which is made on first use.
    std::int64_t track_of_thread(std::uint32_t tid, std::uint32_t name);

    // Names the thread, whether it has a row or will get one.
    void name_thread(std::uint32_t tid, std::string_view name, std::uint64_t began);
    // Sets the end of the thread [ns]. Its number may be used again.
    void end_thread(std::uint32_t tid, std::uint64_t time);

private:
    bool is_new(const Table& table, std::int64_t id) { return known_[&table].insert(id).second; }
    void plain(const Table& table, std::int64_t id, const char* what);
    void needed_by(const Registration& row);
    void put_thread(std::uint32_t tid, Cell name, Cell began);

    Tables& tables_;
    std::unordered_map<const Table*, std::unordered_set<std::int64_t>> known_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> thread_tracks_;  // by thread and name
    std::size_t texts_written_ = 0;
    std::size_t registrations_written_ = 0;
};

}  // namespace rocpd
