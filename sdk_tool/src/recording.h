// Writes an event into the calling thread's ring.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include "entry.h"
#include "state.h"
#include "thread_buffer.h"

namespace rocpd {

inline bool is_recording() { return g_state.recording.load(std::memory_order_relaxed); }

inline std::string_view view(const char* text, std::size_t size) {
    return text != nullptr ? std::string_view{text, size} : std::string_view{};
}

// Copies a part of an entry; returns where the next part starts.
inline char* append(char* at, const void* data, std::size_t size) {
    if (size > 0) std::memcpy(at, data, size);  // an empty part may be a null pointer
    return at + padded(size);
}

// Exclusive use of the calling thread's buffer. False when nothing can be recorded, or when the caller is a signal
// handler that interrupted another turn of its thread.
class Turn {
public:
    Turn() : Turn(ThreadBuffer::mine()) {}
    explicit Turn(ThreadBuffer* thread) : thread_(thread != nullptr && thread->enter() ? thread : nullptr) {}
    ~Turn() {
        if (thread_ != nullptr) thread_->leave();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    explicit operator bool() const { return thread_ != nullptr; }
    ThreadBuffer* operator->() const { return thread_; }

    // Records an entry with `size` bytes after its head, which `fill` writes. Returns 0, or -1 when it was lost.
    template <typename Fill>
    int put(Kind kind, std::uint64_t time, std::size_t size, Fill fill) {
        const std::size_t whole = padded(sizeof(Head) + size);
        char* room = thread_->reserve(whole);
        if (room == nullptr) return -1;
        const auto padding = static_cast<std::uint16_t>(whole - sizeof(Head) - size);
        new (room) Head{static_cast<std::uint32_t>(whole), kind, padding, time};
        fill(room + sizeof(Head));
        thread_->publish(whole);
        return 0;
    }
    template <typename T>
    int put(Kind kind, std::uint64_t time, const T& value) {
        return put(kind, time, sizeof value, [&](char* at) { append(at, &value, sizeof value); });
    }

private:
    ThreadBuffer* const thread_;
};

}  // namespace rocpd
