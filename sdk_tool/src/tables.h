// Rows in SQL: which columns each kind of row fills. Knows nothing of entries or threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clock_readings.h"
#include "database.h"
#include "identity.h"
#include "rocpd/recorder.h"

namespace rocpd {

// What is said of a call stack, as JSON each.
struct StackEvent {
    std::string_view call_stack, line_info, extdata;
};

class Tables {
public:
    // Makes the file and its rows of node, process and metadata; leaves a transaction open.
    explicit Tables(Identity identity);

    const Identity& identity() const { return identity_; }
    const std::string& guid() const { return database_.guid(); }
    const std::string& path() const { return database_.path(); }
    std::uint64_t events() const { return static_cast<std::uint64_t>(last_event_); }

    // As those of Database.
    bool begin();
    bool in_transaction() const { return database_.in_transaction(); }
    bool commit();
    void close();

    struct Event {
        std::uint32_t category;
        std::uint64_t stack_id;
        std::uint64_t parent;
        std::uint64_t correlation;
        std::string_view extdata;  // JSON, empty: {}
    };

    // Returns the id of the event.
    std::int64_t event(const Event& event);
    // An event of nothing but a call stack.
    std::int64_t stack_event(std::uint32_t category, const StackEvent& event);
    void region(std::uint32_t tid, std::uint64_t start, std::uint64_t end, std::uint32_t name, std::int64_t event);
    void argument(std::int64_t event, std::size_t position, std::string_view type, std::string_view name,
                  std::string_view value);
    void dispatch(const rocpd_dispatch_t& dispatch, std::uint32_t tid, std::int64_t event);
    void copy(const rocpd_copy_t& copy, std::uint32_t tid, std::int64_t event);
    void allocation(const rocpd_allocation_t& allocation, std::uint32_t tid, std::string_view extdata,
                    std::int64_t event);
    void graph_launch(const rocpd_graph_launch_t& launch, std::uint32_t tid, std::int64_t event);
    void sample(std::int64_t track, std::uint64_t time, std::int64_t event);
    void value(std::int64_t event, std::int64_t counter, double value);  // event 0: none
    void string(std::size_t id, std::string_view text);

    void put(const Table& table, std::vector<Cell> cells);
    void put(const Registration& row) { database_.write(row, identity_.node_id, identity_.pid); }
    void note(const std::string& tag, const std::string& value) { database_.note(tag, value); }
    // Adds a reading of the clocks.
    void read_clocks() { note("recorder_clocks_" + std::to_string(++clock_readings_), clock_reading()); }
    void end_thread(std::uint32_t tid, std::uint64_t time);
    void end_process(std::uint64_t time);

private:
    void prepare();
    std::vector<Batch*> batches();
    void describe_process();
    template <typename Work>
    void add_node(Batch& batch, const Work& work);

    const Identity identity_;
    Database database_;
    unsigned prepared_for_ = 0;  // the database's connections() at that time
    Batch event_, stack_event_, region_, argument_, dispatch_, copy_, allocation_, graph_, sample_, value_, string_;
    const bool graphs_;  // the file has them
    std::int64_t last_event_ = 0;
    unsigned clock_readings_ = 0;
    std::uint32_t no_region_;  // text number of the empty name: no enclosing marker
};

}  // namespace rocpd
