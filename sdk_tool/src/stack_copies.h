// Copies of threads' stacks: taken in a signal handler, unwound later by a thread of the recorder.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cfi.h"
#include "python_frames.h"

namespace rocpd {

// The registers of a thread at one moment, and the top of its stack.
struct StackCopy {
    static constexpr std::size_t kBytes = 64 << 10;
    static constexpr std::uint64_t kBelow = 128;  // that code may use under its stack pointer [bytes]

    enum State : std::uint32_t { kFree, kFilling, kFull };

    std::atomic<std::uint32_t> state;
    std::uint32_t tid;
    std::uint64_t time;       // [ns]
    std::uint64_t stands_for; // time of the thread [ns]
    cfi::Registers registers;
    PythonFrames python;
    std::uint64_t start;      // address of the first byte
    std::uint64_t size;
    bool is_forbidden;        // to copy: the program gave up the right to it
    char bytes[kBytes];
};

// Room for the copies that were taken and not unwound yet. No locks, no allocation: the handler may interrupt anything.
class StackCopies {
public:
    static constexpr std::size_t kCopies = 256;  // 16 MB of addresses; memory as far as they were needed at one time

    // Returns false when there is no memory.
    bool create();
    // In the handler: returns room for a copy, nullptr where there is none.
    StackCopy* claim();
    // For each copy that is there: hands it to `use`, and frees it.
    template <typename Use>
    void drain(Use use) {
        for (std::size_t i = 0; copies_ != nullptr && i < kCopies; ++i) {
            if (copies_[i].state.load(std::memory_order_acquire) != StackCopy::kFull) continue;
            use(copies_[i]);
            copies_[i].state.store(StackCopy::kFree, std::memory_order_release);
        }
    }
    // To be called in a forked child: what was being copied belongs to the parent.
    void forget();

private:
    StackCopy* copies_ = nullptr;
};

}  // namespace rocpd
