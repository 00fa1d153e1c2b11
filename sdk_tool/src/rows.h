// Owns turning entries into rows: nesting of ranges, ids, what rows refer to. Runs in the writer thread only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "database.h"
#include "entry.h"
#include "identity.h"
#include "thread_buffer.h"

namespace rocpd {

// A range that has begun.
struct Open {
    std::uint64_t start = 0;
    std::uint64_t stack_id = 0;
    std::uint64_t parent = 0;
    std::uint32_t tid = 0;
    std::string text;
};

// What the writer knows of a thread: its open ranges, outermost first. Depths keep their strings for the next range.
struct Timeline {
    std::vector<Open> ranges;
    std::size_t depth = 0;
};

// What was lost or held up, over all threads.
struct Losses {
    std::uint64_t lost = 0;
    std::uint64_t cuts = 0;
    std::uint64_t waits = 0;
    bool operator==(const Losses& other) const {
        return lost == other.lost && cuts == other.cuts && waits == other.waits;
    }
};

class Rows {
public:
    explicit Rows(const Identity& identity);

    const std::string& path() const { return database_->path(); }
    std::uint64_t events() const { return events_; }

    void begin();
    // Writes what one entry says.
    void take(ThreadBuffer& thread, const Head& entry);
    // Ends what a thread left open when it ended.
    void end_thread(ThreadBuffer& thread, std::uint64_t time);
    void commit(const Losses& losses);
    // Ends everything and closes the file.
    void close(const std::vector<ThreadBuffer*>& threads, const Losses& losses);

private:
    struct Event {
        std::uint32_t category;
        std::uint64_t stack_id;
        std::uint64_t parent;
        std::uint64_t correlation;
        std::string_view extdata;
    };

    void prepare();
    std::array<Batch*, 9> batches();
    void flush();
    void write_identity();
    void write_new();
    void write_losses(const Losses& losses);
    Timeline& timeline(ThreadBuffer& thread);
    std::int64_t event(const Event& event);
    void region(std::uint32_t tid, std::uint64_t start, std::uint64_t end, std::uint32_t name, std::int64_t event);
    void marker(const Open& range, std::uint64_t end, std::uint32_t category, std::uint32_t name, bool unfinished);
    void push(ThreadBuffer& thread, const Head& entry);
    void pop(ThreadBuffer& thread, std::uint64_t time, bool unfinished);
    void mark(ThreadBuffer& thread, const Head& entry);
    void begin_range(ThreadBuffer& thread, const Head& entry);
    void end_range(const Head& entry);
    void name_thread(ThreadBuffer& thread, std::string_view name);
    void api_region(ThreadBuffer& thread, const Head& entry);
    void arguments(const char* at, std::size_t count, std::int64_t event);
    void dispatch(ThreadBuffer& thread, const Head& entry);
    void copy(ThreadBuffer& thread, const Head& entry);
    void allocation(ThreadBuffer& thread, const Head& entry);
    void sample(const Head& entry);
    void counter(const Head& entry);
    void value(std::int64_t event, std::int64_t counter, double value);
    std::uint32_t thread_of(const rocpd_event_t& event, const ThreadBuffer& thread);
    std::int64_t event_of(const rocpd_event_t& event, const char* message, bool flags);

    void need_thread(std::uint32_t tid, std::uint64_t began);
    void need(const Table& table, std::int64_t id, const char* what);
    void need_kernel(std::int64_t id);
    bool is_new(const Table& table, std::int64_t id) { return known_[&table].insert(id).second; }
    void put(const Table& table, std::vector<Cell> cells);

    const Identity identity_;
    std::unique_ptr<Database> database_;
    Batch event_, region_, argument_, dispatch_, copy_, allocation_, sample_, pmc_event_, string_;
    std::unordered_map<const Table*, std::unordered_set<std::int64_t>> known_;
    std::unordered_map<std::uint64_t, Open> begun_;          // by range id
    std::unordered_map<std::uint64_t, std::uint64_t> ended_; // ends that were read before their begin
    std::unordered_map<std::int64_t, std::int64_t> dispatch_events_;
    std::unordered_map<std::int64_t, std::vector<std::pair<std::int64_t, double>>> early_values_;
    std::vector<std::unique_ptr<Timeline>> timelines_;
    std::size_t strings_written_ = 0;
    std::size_t facts_written_ = 0;
    std::int64_t last_event_ = 0;
    std::uint64_t events_ = 0;
    std::string json_;
    Losses losses_;
    std::uint32_t ranges_, core_, thread_range_, process_range_, mark_, sample_category_, nothing_;
};

// Stack ids that ranges and marks get.
extern std::atomic<std::uint64_t> g_next_stack;

}  // namespace rocpd
