// Owns what rows refer to: texts, threads, agents, queues … are there before the row that names them is committed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "facts.h"
#include "tables.h"

namespace rocpd {

class References {
public:
    explicit References(Tables& tables) : tables_(tables) {}

    // Writes texts and facts that were registered since the last call.
    void write_new();

    // See to it that there is a row; one that was never registered gets a plain name.
    void thread(std::uint32_t tid, Cell began);
    void agent(std::int64_t id);
    void queue(std::int64_t id) { plain(kQueue, id, "Queue"); }
    void stream(std::int64_t id) { plain(kStream, id, "Stream"); }
    void code_object(std::int64_t id);
    void kernel(std::int64_t id);
    void counter(std::int64_t id);
    void track(std::int64_t id);

    // Gives the thread this name, whether it has a row or will get one.
    void name_thread(std::uint32_t tid, std::string_view name, std::uint64_t began);
    // The thread has ended: its number may come again.
    void end_thread(std::uint32_t tid, std::uint64_t time);

private:
    bool is_new(const Table& table, std::int64_t id) { return known_[&table].insert(id).second; }
    void plain(const Table& table, std::int64_t id, const char* what);
    void needed_by(const Fact& fact);
    void put_thread(std::uint32_t tid, Cell name, Cell began);

    Tables& tables_;
    std::unordered_map<const Table*, std::unordered_set<std::int64_t>> known_;
    std::size_t texts_written_ = 0;
    std::size_t facts_written_ = 0;
};

}  // namespace rocpd
