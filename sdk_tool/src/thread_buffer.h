// The buffer that one thread records into, and the list of all buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "entry.h"
#include "ring.h"
#include "timeline.h"

namespace rocpd {

constexpr std::uint32_t kDeepest = 4096;  // ranges inside ranges that are kept; deeper ones are counted as lost

class ThreadBuffer {
public:
    // Returns the calling thread's buffer, made on first use; nullptr when nothing can be recorded any more.
    static ThreadBuffer* mine() { return current_ != nullptr ? current_ : attach(); }
    // Returns it if the thread has recorded before, else nullptr.
    static ThreadBuffer* existing() { return current_; }

    // Makes what all threads share; called once, at load.
    static void prepare();
    // To be called in a forked child: the other threads are gone, and the buffers are the parent's.
    static void forget_all();
    static std::vector<ThreadBuffer*> all();
    static void remove(ThreadBuffer* buffer);  // an ended thread's, drained
    static std::mutex& list_mutex();

    bool push(std::string_view text);
    bool pop();
    // External correlation id of the ranges and marks that follow.
    void correlate(std::uint64_t id) { correlation_ = id; }
    // Records the correlation id if it changed. To be called before a range or mark; false when it found no room.
    bool ensure_correlation() { return correlation_ == correlation_sent_ || send_correlation(); }

    // Returns room for an entry, or nullptr when it is lost. The caller fills the room and calls `publish`.
    char* reserve(std::size_t size);
    void publish(std::size_t size);

    // Keeps out a signal handler that records while its thread is recording.
    bool enter() {
        if (busy_) return refuse();
        busy_ = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return true;
    }
    void leave() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        busy_ = false;
    }
    bool refuse() {
        lost.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    std::string_view cut(std::string_view text) {
        if (text.size() <= kLongestText) return text;
        cuts.fetch_add(1, std::memory_order_relaxed);
        return text.substr(0, kLongestText);
    }

    const std::uint32_t tid;
    const std::uint64_t began;  // [ns]
    std::atomic<std::uint64_t> lost{0};
    std::atomic<std::uint64_t> cuts{0};
    std::atomic<std::uint64_t> waits{0};  // times the thread waited for the writer
    std::atomic<bool> ended{false};
    // Used by the writer.
    Ring* reading;
    Timeline timeline;

private:
    ThreadBuffer(std::uint32_t thread, Ring* ring);
    ~ThreadBuffer() = default;
    void release();
    static ThreadBuffer* attach();
    static ThreadBuffer* create();
    static void detach(void* buffer);
    char* grow_or_wait(std::size_t size);
    bool grow(std::size_t size);
    bool send_correlation();
    bool record_push(std::string_view text);
    std::size_t spare() const { return static_cast<std::size_t>(open_) * sizeof(Head); }

    // Initial-exec: one load instead of a call; a pointer fits what glibc keeps for libraries loaded late.
    static thread_local ThreadBuffer* current_ __attribute__((tls_model("initial-exec")));

    Ring* writing_;
    std::size_t since_check_ = 0;
    std::uint32_t depth_ = 0;
    std::uint32_t open_ = 0;  // recorded ranges that have not ended: room for their ends is kept free
    std::uint64_t correlation_ = 0;
    std::uint64_t correlation_sent_ = 0;
    bool busy_ = false;
    std::uint64_t recorded_[kDeepest / 64] = {};  // per depth: whether its push was recorded
};

}  // namespace rocpd
