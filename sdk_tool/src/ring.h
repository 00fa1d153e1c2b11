// A bounded byte queue between one thread that records and the writer. No locks, no allocation.
//
// Entries are contiguous; every size is a multiple of 16, so an entry of 16 bytes always fits before the end of the
// storage and needs no filler.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace rocpd {

struct Head {
    std::uint32_t size;  // of the whole entry [bytes]
    std::uint16_t kind;  // 0: filler up to the end of the storage
    std::uint16_t flags;
    std::uint64_t time;  // [ns]
};
static_assert(sizeof(Head) == 16);

constexpr std::size_t padded(std::size_t size) { return (size + 15) & ~static_cast<std::size_t>(15); }

class Ring {
public:
    // Returns nullptr when there is no memory.
    static Ring* create(std::size_t capacity) {
        void* place = mmap(nullptr, sizeof(Ring) + capacity, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return place == MAP_FAILED ? nullptr : new (place) Ring(capacity);
    }
    static void destroy(Ring* ring) { munmap(ring, sizeof(Ring) + ring->capacity_); }

    std::size_t capacity() const { return capacity_; }

    // Recording thread: returns room for `size` bytes such that `spare` more stay free, or nullptr.
    char* reserve(std::size_t size, std::size_t spare) {
        const std::size_t offset = tail_local_ & (capacity_ - 1);
        const std::size_t to_end = capacity_ - offset;
        const std::size_t needed = size <= to_end ? size : to_end + size;
        if (tail_local_ + needed + spare > head_seen_ + capacity_) {
            head_seen_ = head_.load(std::memory_order_acquire);
            if (tail_local_ + needed + spare > head_seen_ + capacity_) return nullptr;
        }
        if (size > to_end) {
            new (data() + offset) Head{static_cast<std::uint32_t>(to_end), 0, 0, 0};
            tail_local_ += to_end;
            return data();
        }
        return data() + offset;
    }
    // Recording thread: makes the reserved entry visible to the writer.
    void publish(std::size_t size) {
        tail_local_ += size;
        tail_.store(tail_local_, std::memory_order_release);
    }
    // Recording thread: bytes in use, as it last saw them (never too few).
    std::size_t used() const { return tail_local_ - head_seen_; }

    // Writer: returns the oldest entry, or nullptr.
    const Head* front() {
        for (;;) {
            if (head_local_ == tail_seen_) {
                tail_seen_ = tail_.load(std::memory_order_acquire);
                if (head_local_ == tail_seen_) return nullptr;
            }
            const Head* entry = reinterpret_cast<const Head*>(data() + (head_local_ & (capacity_ - 1)));
            if (entry->kind != 0) return entry;
            head_local_ += entry->size;
        }
    }
    void pop(std::size_t size) {
        head_local_ += size;
        head_.store(head_local_, std::memory_order_release);
    }
    // Bytes not yet read; exact only while the recording thread records nothing.
    std::size_t waiting() const {
        return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
    }

    // The larger ring that the recording thread went on with, once it has left this one for good.
    std::atomic<Ring*> next{nullptr};

private:
    explicit Ring(std::size_t capacity) : capacity_(capacity) {}
    char* data() { return reinterpret_cast<char*>(this) + sizeof(Ring); }

    const std::size_t capacity_;  // a power of two
    alignas(64) std::size_t tail_local_ = 0;
    std::size_t head_seen_ = 0;
    std::atomic<std::size_t> tail_{0};
    alignas(64) std::size_t head_local_ = 0;
    std::size_t tail_seen_ = 0;
    std::atomic<std::size_t> head_{0};
};

}  // namespace rocpd
