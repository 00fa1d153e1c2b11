// Measures the recorder against what it stands on; prints one JSON object. Run by benchmarks/recorder.py.
//
// usage: recorder_bench pairs | sustained REGIONS | bare REGIONS FILE
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "rocpd/recorder.h"

namespace {

std::uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// A counter that is cheaper to read than a clock, so that single pairs can be measured.
std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return now();
#endif
}

double ns_per_tick() {
    const std::uint64_t t0 = ticks(), n0 = now();
    while (now() - n0 < 50000000) {
    }
    return static_cast<double>(now() - n0) / static_cast<double>(ticks() - t0);
}

struct Spread {
    double median, p99, worst;
};

Spread spread(std::vector<std::uint64_t>& times, double scale) {
    std::sort(times.begin(), times.end());
    const auto at = [&](double q) {
        return static_cast<double>(times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))]) * scale;
    };
    return {at(0.5), at(0.99), at(1.0)};
}

constexpr char kText[] = "training step";
constexpr std::size_t kSize = sizeof kText - 1;

int pairs() {
    constexpr std::size_t kBursts = 200, kPairs = 1000;  // 1000 pairs take 48 kB: they fit the smallest buffer
    const double scale = ns_per_tick();
    std::vector<std::uint64_t> recorded, clocks, empty;
    rocpd_start();
    rocpd_range_push(kText, kSize);
    rocpd_range_pop();
    timespec t{};
    for (std::size_t burst = 0; burst < kBursts; ++burst) {
        rocpd_flush();
        for (std::size_t i = 0; i < kPairs; ++i) {
            const std::uint64_t a = ticks();
            rocpd_range_push(kText, kSize);
            rocpd_range_pop();
            const std::uint64_t b = ticks();
            clock_gettime(CLOCK_BOOTTIME, &t);
            clock_gettime(CLOCK_BOOTTIME, &t);
            const std::uint64_t c = ticks();
            const std::uint64_t d = ticks();
            recorded.push_back(b - a);
            clocks.push_back(c - b);
            empty.push_back(d - c);
        }
    }
    // Whole bursts, untimed inside: the counter that times single pairs has a grain of some nanoseconds.
    std::vector<std::uint64_t> whole, whole_clocks;
    for (std::size_t burst = 0; burst < kBursts; ++burst) {
        rocpd_flush();
        const std::uint64_t a = now();
        for (std::size_t i = 0; i < kPairs; ++i) {
            rocpd_range_push(kText, kSize);
            rocpd_range_pop();
        }
        const std::uint64_t b = now();
        for (std::size_t i = 0; i < 2 * kPairs; ++i) clock_gettime(CLOCK_BOOTTIME, &t);
        whole.push_back(b - a);
        whole_clocks.push_back(now() - b);
    }
    const double each = 1.0 / static_cast<double>(kPairs);
    const Spread pair = spread(recorded, scale), clock = spread(clocks, scale), none = spread(empty, scale);
    std::printf("{\"pair_median\": %.1f, \"pair_p99\": %.1f, \"pair_worst\": %.1f, \"clocks_median\": %.1f, "
                "\"timer_median\": %.1f, \"pair_in_burst\": %.1f, \"clocks_in_burst\": %.1f}\n",
                pair.median, pair.p99, pair.worst, clock.median, none.median, spread(whole, each).median,
                spread(whole_clocks, each).median);
    rocpd_finalize();
    return 0;
}

int sustained(int regions) {
    rocpd_start();
    rocpd_range_push(kText, kSize);
    rocpd_range_pop();
    rocpd_flush();
    const std::uint64_t start = now();
    for (int i = 1; i < regions; ++i) {
        rocpd_range_push(kText, kSize);
        rocpd_range_pop();
    }
    const std::uint64_t recorded = now();
    rocpd_flush();
    const std::uint64_t flushed = now();
    rocpd_status_t status{};
    rocpd_status(&status);
    const std::string file = status.file;
    rocpd_finalize();
    std::printf("{\"record_s\": %.6f, \"total_s\": %.6f, \"lost\": %llu, \"file\": \"%s\"}\n",
                static_cast<double>(recorded - start) / 1e9, static_cast<double>(flushed - start) / 1e9,
                static_cast<unsigned long long>(status.lost), file.c_str());
    return 0;
}

void must(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) std::abort();
}

// Returns the suffix of the tables.
std::string clear(sqlite3* db) {
    std::string suffix;
    sqlite3_stmt* s = nullptr;
    must(sqlite3_prepare_v2(db, "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'", -1, &s, nullptr));
    must(sqlite3_step(s));
    suffix = reinterpret_cast<const char*>(sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    for (const char* table : {"rocpd_region", "rocpd_event"})
        must(sqlite3_exec(db, ("DELETE FROM \"" + (table + suffix) + "\"").c_str(), nullptr, nullptr, nullptr));
    must(sqlite3_exec(db, "VACUUM", nullptr, nullptr, nullptr));
    return suffix;
}

// The same rows into the same tables, with the same pragmas, and nothing else: what SQLite itself takes.
int bare(int regions, const char* file) {
    sqlite3* db = nullptr;
    must(sqlite3_open(file, &db));
    must(sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA cache_size=-32768", nullptr, nullptr, nullptr));
    const std::string suffix = clear(db);
    sqlite3_stmt *event = nullptr, *region = nullptr;
    const std::string events = "INSERT INTO \"rocpd_event" + suffix +
                               "\" (id, category_id, stack_id, parent_stack_id, correlation_id, extdata) "
                               "VALUES (?, ?, ?, ?, ?, ?)";
    const std::string rows = "INSERT INTO \"rocpd_region" + suffix +
                             "\" (nid, pid, tid, start, \"end\", name_id, event_id) VALUES (?, ?, ?, ?, ?, ?, ?)";
    const char extdata[] = "{\"message\":\"training step\"}";
    const std::uint64_t start = now();
    must(sqlite3_prepare_v2(db, events.c_str(), -1, &event, nullptr));
    must(sqlite3_prepare_v2(db, rows.c_str(), -1, &region, nullptr));
    must(sqlite3_exec(db, "BEGIN", nullptr, nullptr, nullptr));
    for (int i = 1; i <= regions; ++i) {
        sqlite3_bind_int64(event, 1, i);
        sqlite3_bind_int64(event, 2, 1);
        sqlite3_bind_int64(event, 3, i);
        sqlite3_bind_int64(event, 4, 0);
        sqlite3_bind_int64(event, 5, 0);
        sqlite3_bind_text(event, 6, extdata, sizeof extdata - 1, SQLITE_STATIC);
        must(sqlite3_step(event));
        sqlite3_reset(event);
        sqlite3_bind_int64(region, 1, 706157060);
        sqlite3_bind_int64(region, 2, 18481);
        sqlite3_bind_int64(region, 3, 18481);
        sqlite3_bind_int64(region, 4, 3715364732865 + i * 100);
        sqlite3_bind_int64(region, 5, 3715364732915 + i * 100);
        sqlite3_bind_int64(region, 6, 3);
        sqlite3_bind_int64(region, 7, i);
        must(sqlite3_step(region));
        sqlite3_reset(region);
        if (i % 65536 == 0) must(sqlite3_exec(db, "COMMIT; BEGIN", nullptr, nullptr, nullptr));
    }
    must(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr));
    const std::uint64_t end = now();
    sqlite3_finalize(event);
    sqlite3_finalize(region);
    sqlite3_close(db);
    std::printf("{\"total_s\": %.6f}\n", static_cast<double>(end - start) / 1e9);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "pairs") return pairs();
    if (what == "sustained" && argc > 2) return sustained(std::atoi(argv[2]));
    if (what == "bare" && argc > 3) return bare(std::atoi(argv[2]), argv[3]);
    std::fprintf(stderr, "usage: recorder_bench pairs | sustained REGIONS | bare REGIONS FILE\n");
    return 2;
}
