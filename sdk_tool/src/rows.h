// Turns entries into rows of one file. Runs in the writer thread only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clock_readings.h"
#include "entry.h"
#include "identity.h"
#include "ranges.h"
#include "referenced_rows.h"
#include "stacks.h"
#include "tables.h"
#include "thread_buffer.h"
#include "gpu_rows.h"

namespace rocpd {

// Events lost, texts cut and waits, over all threads.
struct Losses {
    std::uint64_t lost = 0;   // events
    std::uint64_t cuts = 0;   // texts
    std::uint64_t waits = 0;  // of threads for the writer
    bool operator==(const Losses& other) const {
        return lost == other.lost && cuts == other.cuts && waits == other.waits;
    }
};

class Rows {
public:
    // Makes the file; ready for rows.
    explicit Rows(const Identity& identity);

    const std::string& path() const { return tables_.path(); }
    const std::string& guid() const { return tables_.guid(); }
    std::uint64_t events() const { return tables_.events(); }

    // Makes ready for rows. False: another process has locked the file; try again.
    bool begin();
    // Writes the rows of one entry.
    void take(ThreadBuffer& thread, const Head& entry);
    void name_thread(ThreadBuffer& thread, std::string_view name) { ranges_.name_thread(thread, name); }
    // Ends the ranges that a thread left open when it ended.
    void end_thread(ThreadBuffer& thread, std::uint64_t time) { ranges_.end_thread(thread, time); }
    // To be called when all rings have been emptied once more.
    void drained(const std::vector<ThreadBuffer*>& threads) {
        ranges_.forget_strays();
        ranges_.show_open(threads);
    }
    // False: another process reads the file; try again.
    bool commit(const Losses& losses);
    // Ends all ranges, threads and the process; commit and close() follow.
    void finish(const std::vector<ThreadBuffer*>& threads);
    void close() { tables_.close(); }

private:
    Tables tables_;
    ReferencedRows referenced_;
    Ranges ranges_;
    GpuRows gpu_rows_;
    Stacks stacks_;
    Losses losses_;  // as they stand in the file
    ReadingPace clocks_;
};

}  // namespace rocpd
