#include "thread_buffer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

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
    const Phase phase = g_state.phase.load(std::memory_order_acquire);
    if (phase == Phase::kClosed || phase == Phase::kFailed) return nullptr;
    if (!start_service()) return nullptr;
    if (!is_service_thread()) catch_interrupt();
    Ring* ring = Ring::create(kSmallestRing);
    if (ring == nullptr) return nullptr;
    auto* buffer = new ThreadBuffer(static_cast<std::uint32_t>(syscall(SYS_gettid)), ring);
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
    std::size_t capacity = writing_->capacity() * 2;
    while (capacity < 4 * size) capacity *= 2;
    if (capacity > config().buffer_limit) return false;
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
        // Nobody empties the ring after the end, after a failure, or in a child made without fork().
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

bool ThreadBuffer::push(std::string_view text) {
    if (!enter()) return false;
    const std::uint32_t depth = depth_++;
    bool taken = false;
    if (depth < kDeepest) {
        const std::uint64_t bit = std::uint64_t{1} << (depth % 64);
        recorded_[depth / 64] &= ~bit;
        if (g_state.recording.load(std::memory_order_relaxed)) {
            const std::uint64_t time = now_ns();
            const std::string_view kept = cut(text);
            const std::size_t size = padded(sizeof(Head) + kept.size());
            ++open_;  // before the room is taken: it keeps room for this range's end
            if (char* room = reserve(size)) {
                auto* head = new (room) Head{static_cast<std::uint32_t>(size), kPush, 0, time};
                // The text's exact size: padding is less than 16 bytes.
                head->flags = static_cast<std::uint16_t>(size - sizeof(Head) - kept.size());
                std::memcpy(room + sizeof(Head), kept.data(), kept.size());
                publish(size);
                recorded_[depth / 64] |= bit;
                taken = true;
            } else {
                --open_;
            }
        }
    } else if (g_state.recording.load(std::memory_order_relaxed)) {
        refuse();
    }
    leave();
    return taken;
}

bool ThreadBuffer::pop() {
    if (!enter()) return false;
    bool taken = false;
    if (depth_ > 0) {  // a pop without a push is the program's mistake, and no event
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
