#include "thread_buffer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "clock.h"
#include "config.h"
#include "lifecycle.h"
#include "signals.h"
#include "state.h"

namespace rocpd {

State g_state;

thread_local ThreadBuffer* ThreadBuffer::current_ = nullptr;

namespace {

struct List {
    std::mutex mutex;
    std::vector<ThreadBuffer*> buffers;
};

List& list() {
    static List& only = *new List;  // never destroyed, see config()
    return only;
}

pthread_key_t ending_key(void (*ending)(void*)) {
    static const pthread_key_t key = [ending] {
        pthread_key_t fresh{};
        pthread_key_create(&fresh, ending);
        return fresh;
    }();
    return key;
}

}  // namespace

ThreadBuffer::ThreadBuffer(std::uint32_t thread, Ring* ring)
    : tid(thread), began(now_ns()), reading(ring), writing_(ring) {}

ThreadBuffer* ThreadBuffer::attach() {
    // A signal handler that records while its thread is attaching would wait for itself.
    static thread_local bool attaching = false;
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (attaching || phase == Phase::kClosed || phase == Phase::kFailed) return nullptr;
    attaching = true;
    ThreadBuffer* buffer = start_service() ? create() : nullptr;
    attaching = false;
    return buffer;
}

ThreadBuffer* ThreadBuffer::create() {
    if (!is_service_thread()) catch_interrupt();
    Ring* ring = Ring::create(kSmallestRing);
    auto* buffer = ring != nullptr
                       ? new (std::nothrow) ThreadBuffer(static_cast<std::uint32_t>(syscall(SYS_gettid)), ring)
                       : nullptr;
    if (buffer == nullptr) {
        if (ring != nullptr) Ring::destroy(ring);
        if (g_state.recording.load(std::memory_order_relaxed)) g_state.unbuffered.fetch_add(1);
        return nullptr;
    }
    {
        const std::lock_guard<std::mutex> lock(list().mutex);
        list().buffers.push_back(buffer);
    }
    pthread_setspecific(ending_key(&ThreadBuffer::detach), buffer);
    current_ = buffer;
    return buffer;
}

void ThreadBuffer::detach(void* buffer) {
    // A thread that records in a later destructor gets a new buffer, and comes here again.
    current_ = nullptr;
    static_cast<ThreadBuffer*>(buffer)->ended.store(true, std::memory_order_release);
}

void ThreadBuffer::prepare() {
    list();
    ending_key(&ThreadBuffer::detach);
}

void ThreadBuffer::forget_all() {
    current_ = nullptr;
    pthread_setspecific(ending_key(&ThreadBuffer::detach), nullptr);
    for (ThreadBuffer* buffer : list().buffers) buffer->release();
    list().buffers.clear();
}

void ThreadBuffer::release() {
    for (Ring* ring = reading; ring != nullptr;) {
        Ring* next = ring->next.load(std::memory_order_relaxed);
        Ring::destroy(ring);
        ring = next;
    }
    delete this;
}

std::vector<ThreadBuffer*> ThreadBuffer::all() {
    const std::lock_guard<std::mutex> lock(list().mutex);
    return list().buffers;
}

void ThreadBuffer::remove(ThreadBuffer* buffer) {
    {
        const std::lock_guard<std::mutex> lock(list().mutex);
        auto& buffers = list().buffers;
        buffers.erase(std::remove(buffers.begin(), buffers.end(), buffer), buffers.end());
    }
    buffer->release();
}

std::mutex& ThreadBuffer::list_mutex() { return list().mutex; }

char* ThreadBuffer::reserve(std::size_t size) {
    char* room = writing_->reserve(size, spare());
    return room != nullptr ? room : grow_or_wait(size);
}

void ThreadBuffer::publish(std::size_t size) {
    writing_->publish(size);
    since_check_ += size;
    if (since_check_ > writing_->capacity() / 8) {
        since_check_ = 0;
        if (writing_->waiting() > writing_->capacity() / 2) wake_writer();
    }
}

bool ThreadBuffer::grow(std::size_t size) {
    const std::size_t limit = config().buffer_limit;
    if (size > limit / 4) return false;
    std::size_t capacity = writing_->capacity() * 2;
    while (capacity < 4 * size) capacity *= 2;
    if (capacity > limit) return false;
    Ring* larger = Ring::create(capacity);
    if (larger == nullptr) return false;
    writing_->next.store(larger, std::memory_order_release);
    writing_ = larger;
    return true;
}

char* ThreadBuffer::grow_or_wait(std::size_t size) {
    wake_writer();
    if (grow(size)) return writing_->reserve(size, spare());
    const bool cannot_fit = size + spare() > writing_->capacity() / 2;
    if (config().drop || cannot_fit) {
        refuse();
        return nullptr;
    }
    waits.fetch_add(1, std::memory_order_relaxed);
    for (long pause_ns = 20000;; pause_ns = std::min(pause_ns * 2, 1000000L)) {
        // No writer empties the ring after the end, after a failure, or in a child made without fork().
        if (g_state.phase.load(std::memory_order_acquire) != Phase::kRunning || !is_owner()) {
            refuse();
            return nullptr;
        }
        wake_writer();
        const timespec pause{0, pause_ns};
        nanosleep(&pause, nullptr);
        if (char* room = writing_->reserve(size, spare())) return room;
    }
}

bool ThreadBuffer::send_correlation() {
    constexpr std::size_t size = padded(sizeof(Head) + sizeof correlation_);
    char* room = reserve(size);
    if (room == nullptr) return false;
    new (room) Head{size, kCorrelate, 0, 0};
    std::memcpy(room + sizeof(Head), &correlation_, sizeof correlation_);
    publish(size);
    correlation_sent_ = correlation_;
    return true;
}

bool ThreadBuffer::record_push(std::string_view text) {
    if (!ensure_correlation()) return false;
    const std::uint64_t time = now_ns();
    text = cut(text);
    const std::size_t size = padded(sizeof(Head) + text.size());
    ++open_;  // before the room is taken: it keeps room for this range's end
    char* room = reserve(size);
    if (room == nullptr) {
        --open_;
        return false;
    }
    // The text's exact size: padding is less than 16 bytes.
    const auto padding = static_cast<std::uint16_t>(size - sizeof(Head) - text.size());
    new (room) Head{static_cast<std::uint32_t>(size), kPush, padding, time};
    std::memcpy(room + sizeof(Head), text.data(), text.size());
    publish(size);
    return true;
}

bool ThreadBuffer::push(std::string_view text) {
    if (!enter()) return false;
    const std::uint32_t depth = depth_++;
    const bool recording = g_state.recording.load(std::memory_order_relaxed);
    bool taken = false;
    if (depth < kDeepest) {
        taken = recording && record_push(text);
        const std::uint64_t bit = std::uint64_t{1} << (depth % 64);
        if (taken)
            recorded_[depth / 64] |= bit;
        else
            recorded_[depth / 64] &= ~bit;
    } else if (recording) {
        refuse();
    }
    leave();
    return taken;
}

bool ThreadBuffer::pop() {
    if (!enter()) return false;
    bool taken = false;
    if (depth_ > 0) {  // a pop without a push is the program's mistake, not an event
        const std::uint32_t depth = --depth_;
        if (depth < kDeepest && (recorded_[depth / 64] >> (depth % 64) & 1u) != 0) {
            const std::uint64_t time = now_ns();
            --open_;
            if (char* room = reserve(sizeof(Head))) {  // the room was kept; null only after the end
                new (room) Head{sizeof(Head), kPop, 0, time};
                publish(sizeof(Head));
                taken = true;
            }
        }
    }
    leave();
    return taken;
}

}  // namespace rocpd
