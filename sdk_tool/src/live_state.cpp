#include "live_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

#include "clock.h"
#include "config.h"
#include "recording.h"
#include "rocpd/recorder.h"

namespace rocpd::live {
namespace {

std::atomic<File*> g_file{nullptr};
std::atomic<bool> g_unusable{false};
// Names of the file: a hidden one until the database has its own.
std::string& path() {
    static std::string& only = *new std::string;
    return only;
}
std::mutex& mutex() {
    static std::mutex& only = *new std::mutex;
    return only;
}
bool g_is_named = false;
std::atomic<bool> g_stays{false};

// What is written before is seen before what is written after. GCC's thread sanitizer knows no fences.
void order_writes() {
#ifndef __SANITIZE_THREAD__
    std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Makes the turn of a slot odd, so that its readers look again, and even at the end. False: another thread holds it for
// long, as one that was killed in a forked parent does; then nothing is written.
class Change {
public:
    explicit Change(std::atomic<std::uint32_t>& turn) : turn_(turn) {
        for (int i = 0; i < 10000 && !held_; ++i) {
            std::uint32_t even = turn.load(std::memory_order_relaxed) & ~1u;
            held_ = turn.compare_exchange_weak(even, even + 1, std::memory_order_acquire);
        }
        order_writes();
    }
    ~Change() {
        if (held_) turn_.fetch_add(1, std::memory_order_release);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    explicit operator bool() const { return held_; }

private:
    std::atomic<std::uint32_t>& turn_;
    bool held_ = false;
};

template <std::size_t size>
void copy(char (&to)[size], const char* from) {
    const std::size_t length = from == nullptr ? 0 : strnlen(from, size);
    if (length > 0) std::memcpy(to, from, length);
    std::memset(to + length, 0, size - length);
}

// Returns the file, made at the first use; nullptr where there is no room for it.
File* file() {
    if (File* known = g_file.load(std::memory_order_acquire)) return known;
    if (g_unusable.load() || !is_owner()) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex());
    if (File* known = g_file.load(std::memory_order_acquire)) return known;
    path() = config().folder + "/.rocpd-live-" + std::to_string(getpid());
    const int descriptor = open(path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    // Room for all of it now: a full disk would end the process by a signal later.
    const bool has_room = descriptor >= 0 && posix_fallocate(descriptor, 0, sizeof(File)) == 0;
    void* at = has_room ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (descriptor >= 0) close(descriptor);
    if (at == MAP_FAILED) {
        if (descriptor >= 0) unlink(path().c_str());
        g_unusable.store(true);
        return nullptr;
    }
    g_is_named = false;
    g_file.store(static_cast<File*>(at), std::memory_order_release);
    return static_cast<File*>(at);
}

// The slot of the calling thread, given back when the thread ends.
struct Slot {
    File* of = nullptr;
    Thread* slot = nullptr;
    int depth = 0;  // calls that the thread is in
    ~Slot() {
        if (slot == nullptr || of != g_file.load()) return;
        const Change change(slot->turn);
        slot->since = slot->range_since = 0;
        slot->tid = 0;
    }
};
thread_local Slot t_slot;

Thread* mine(File* in) {
    if (t_slot.of == in) return t_slot.slot;
    t_slot.of = in;
    t_slot.slot = nullptr;
    t_slot.depth = 0;
    const std::lock_guard<std::mutex> lock(mutex());
    for (Thread& slot : in->threads) {
        if (slot.tid != 0) continue;
        const Change change(slot.turn);
        slot.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
        return t_slot.slot = &slot;
    }
    in->header.flags.fetch_or(kCrowded);
    return nullptr;
}

// A group by its number; nullptr where there is none.
Group* group_of(int number) {
    File* at = number >= 0 && number < static_cast<int>(kGroups) ? g_file.load(std::memory_order_acquire) : nullptr;
    return at != nullptr ? &at->groups[number] : nullptr;
}

}  // namespace

void name(const std::string& database, const std::string& guid, const std::string& host, int rank) {
    const std::lock_guard<std::mutex> lock(mutex());
    File* at = g_file.load(std::memory_order_acquire);
    if (at == nullptr || g_is_named) return;
    Header& header = at->header;
    copy(header.guid, guid.c_str());
    copy(header.host, host.c_str());
    header.version = kVersion;
    header.threads = kThreads;
    header.groups = kGroups;
    header.rank = rank;
    header.pid = static_cast<std::uint64_t>(getpid());
    header.speed = 1.0;
    const std::string named = database + ".live";
    if (std::rename(path().c_str(), named.c_str()) == 0) path() = named;
    g_is_named = true;
    order_writes();
    std::memcpy(header.magic, "ROCPDLIV", sizeof header.magic);
}

void beat() {
    File* at = g_file.load(std::memory_order_acquire);
    if (at == nullptr) return;
    const Change change(at->header.turn);
    at->header.clock = now_ns();
    at->header.wall = clock_ns(CLOCK_REALTIME);
}

void show_ranges(const std::function<OpenRange(std::uint32_t tid)>& of_thread) {
    File* at = g_file.load(std::memory_order_acquire);
    if (at == nullptr) return;
    for (Thread& slot : at->threads) {
        if (slot.tid == 0) continue;
        const OpenRange range = of_thread(slot.tid);
        if (slot.range_since == range.start) continue;
        const Change change(slot.turn);
        slot.range_since = range.start;
        copy(slot.range, std::string(range.text).c_str());
    }
}

void failed() {
    if (File* at = g_file.load(std::memory_order_acquire)) at->header.flags.fetch_or(kFailed);
}

void stay() { g_stays.store(true); }

void end() {
    g_unusable.store(true);
    // Maybe in a signal handler, which waits for nobody.
    const std::unique_lock<std::mutex> lock(mutex(), std::try_to_lock);
    File* at = g_file.load();
    if (!lock || at == nullptr) return;
    const auto is_open = [](const Group& group) { return group.size != 0 && group.closed == 0; };
    if (g_is_named && g_stays.load() && std::any_of(std::begin(at->groups), std::end(at->groups), is_open))
        at->header.flags.fetch_or(kEnded);
    else
        unlink(path().c_str());
}

void forget() {
    new (&mutex()) std::mutex;  // another thread of the parent may have held it
    // Mapped in the parent too: what is written here would be the parent's.
    g_file.store(nullptr);
    g_unusable.store(false);
    g_stays.store(false);
}

}  // namespace rocpd::live

using namespace rocpd;

extern "C" {

int rocpd_group(uint64_t id, uint32_t size, int member, const char* name) {
    live::File* at = is_recording() && size > 0 ? live::file() : nullptr;
    if (at == nullptr) return -1;
    const std::lock_guard<std::mutex> lock(live::mutex());
    live::Group* room = nullptr;
    for (live::Group& group : at->groups) {
        if (group.size != 0 && group.id == id && group.closed == 0) return static_cast<int>(&group - at->groups);
        // One that was left is of use to readers while there is another.
        if (group.size == 0 || (group.closed != 0 && room == nullptr)) room = &group;
        if (group.size == 0) break;
    }
    if (room == nullptr) {
        at->header.flags.fetch_or(live::kCrowded);
        return -1;
    }
    const live::Change change(room->turn);
    room->entered = room->left = room->entered_at = room->left_at = room->bytes = 0;
    for (auto* text : {&room->operation, &room->left_operation}) live::copy(*text, nullptr);
    room->closed = 0;
    room->id = id;
    room->member = member;
    live::copy(room->name, name);
    room->size = size;
    return static_cast<int>(room - at->groups);
}

uint64_t rocpd_group_enter(int group, const char* operation, uint64_t bytes) {
    live::Group* slot = live::group_of(group);
    if (slot == nullptr) return 0;
    const live::Change change(slot->turn);
    if (!change) return 0;
    slot->entered += 1;
    slot->entered_at = now_ns();
    slot->bytes = bytes;
    live::copy(slot->operation, operation);
    return slot->entered;
}

void rocpd_group_leave(int group, uint64_t number, const char* operation) {
    live::Group* slot = live::group_of(group);
    if (slot == nullptr) return;
    if (const live::Change change(slot->turn); change && number > slot->left) {
        slot->left = std::min(number, slot->entered);
        slot->left_at = now_ns();
        live::copy(slot->left_operation, operation);
    }
}

void rocpd_group_close(int group, int aborted) {
    live::Group* slot = live::group_of(group);
    if (slot == nullptr) return;
    const live::Change change(slot->turn);
    slot->closed = aborted != 0 ? live::kAborted : live::kClosed;
    if (aborted == 0) slot->left = slot->entered;
}

void rocpd_call_begin(const char* call, uint64_t group_id) {
    live::File* at = is_recording() ? live::file() : nullptr;
    live::Thread* slot = at != nullptr ? live::mine(at) : nullptr;
    if (slot == nullptr || live::t_slot.depth++ > 0) return;
    const live::Change change(slot->turn);
    live::copy(slot->call, call);
    slot->group = group_id;
    slot->since = now_ns();
}

void rocpd_call_end(void) {
    live::File* at = live::g_file.load(std::memory_order_acquire);
    if (at == nullptr || live::t_slot.of != at || live::t_slot.slot == nullptr) return;
    if (live::t_slot.depth == 0 || --live::t_slot.depth > 0) return;  // it began while recording was off; a nested one
    const live::Change change(live::t_slot.slot->turn);
    live::t_slot.slot->since = 0;
}

}  // extern "C"
