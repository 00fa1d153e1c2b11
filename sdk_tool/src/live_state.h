// The state file: calls and collectives that have begun and not ended, beside the database. The layout is that of
// rocpd/schema/live_state.py, which says what each field means; tests/record/test_live_state.py compares the offsets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rocpd::live {

constexpr std::uint32_t kVersion = 1, kThreads = 64, kGroups = 192;
constexpr std::uint32_t kEnded = 1, kFailed = 2, kCrowded = 4;  // flags
constexpr std::uint32_t kClosed = 1, kAborted = 2;  // of groups

struct Header {
    char magic[8];
    std::uint32_t version;
    std::atomic<std::uint32_t> turn;
    std::atomic<std::uint32_t> flags;
    std::uint32_t threads, groups;
    std::int32_t rank;
    std::uint64_t pid, clock, wall;
    char boot[40], guid[40], host[64];
    double speed;
    char reserved[48];
};

struct Thread {
    std::atomic<std::uint32_t> turn;
    std::atomic<std::uint32_t> tid;  // 0: a free slot, which a thread that ends leaves to one that begins
    std::uint64_t since, group;
    char call[48];
    std::uint64_t range_since;
    char range[48];
};

struct Group {
    std::atomic<std::uint32_t> turn;
    std::uint32_t size;
    std::int32_t member;
    std::uint32_t closed;
    std::uint64_t id, entered, left, entered_at, left_at, bytes;
    char operation[48], left_operation[48], name[32];
};

struct File {
    Header header;
    Thread threads[kThreads];
    Group groups[kGroups];
};

static_assert(sizeof(Header) == 256 && sizeof(Thread) == 128 && sizeof(Group) == 192);

// Gives the file its name beside the database, and says who writes it. Does nothing while there is none.
void name(const std::string& database, const std::string& guid, const std::string& host, int rank);
// A sign of life; the writer's.
void beat();
// The innermost range that a thread is in, as far as rows have been made; a start of 0: none.
struct OpenRange {
    std::uint64_t start;
    std::string_view text;
};
// Writes down the ranges of all threads that have made calls; the writer's.
void show_ranges(const std::function<OpenRange(std::uint32_t tid)>& of_thread);
// The database cannot be written any more.
void failed();
// A signal ends the process: the file is to stay if there are groups that the process has not left.
void stay();
// The recording has ended: removes the file.
void end();
// To be called in a forked child: the file is the parent's.
void forget();

}  // namespace rocpd::live
