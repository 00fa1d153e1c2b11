#include "native_sampler.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "clock.h"
#include "config.h"
#include "debug_lines.h"
#include "pace.h"
#include "recording.h"
#include "sampled_threads.h"
#include "say.h"
#include "state.h"
#include "unwinder.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kTurn = 20'000'000;         // the most between two looks at what was copied [ns]
constexpr std::uint64_t kLook = 100'000'000;        // between looks at the threads [ns]

bool is_by_wall_time() { return config().stacks_wall_hz > 0; }
double native_hz() { return is_by_wall_time() ? config().stacks_wall_hz : config().stacks_hz; }

class NativeSampler {
public:
    NativeSampler() : threads_(native_hz(), is_by_wall_time()) {}

    // Samples until the file is closed, or the program takes the signal.
    void run();

private:
    bool look(std::uint64_t now);
    void sample(std::uint64_t now);
    void record(const StackCopy& copy);

    SampledThreads threads_;
    Unwinder unwinder_;
    std::uint64_t looked_ = 0, sampled_ = 0;  // when [ns of CLOCK_MONOTONIC]
    bool has_said_ = false;                   // that stacks can no longer be copied
};

void NativeSampler::run() {
    std::uint64_t chance = now_ns() | 1u;
    const auto distance = [&] { return is_by_wall_time() ? random_distance(threads_.period(), chance) : kTurn; };
    for (Pace pace(native_hz()); pace.wait(distance());) {
        const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (!is_recording()) {
            threads_.stop();
            looked_ = sampled_ = 0;
            continue;
        }
        if (now - looked_ >= kLook && !look(now)) return;
        if (is_by_wall_time()) sample(now);
        SampledThreads::copies().drain([this](const StackCopy& copy) { record(copy); });
    }
}

// Returns false when the signal is the program's.
bool NativeSampler::look(std::uint64_t now) {
    looked_ = now;
    if (SampledThreads::has_signal()) {
        threads_.look();
        return true;
    }
    threads_.stop();
    say("the program uses signal " + std::to_string(SampledThreads::signal_number()) + ": no further call stacks");
    return false;
}

void NativeSampler::sample(std::uint64_t now) {
    const std::uint64_t period = threads_.period();
    const std::uint64_t periods = sampled_ == 0 ? 1 : (now - sampled_ + period / 2) / period;
    if (periods > 0) threads_.sample(periods * period);
    sampled_ = now;
}

void NativeSampler::record(const StackCopy& copy) {
    if (copy.is_forbidden && !has_said_) {
        has_said_ = true;
        say("the program forbade process_vm_readv (seccomp): call stacks without callers from now on");
    }
    Turn turn;  // first: the file begins before names are read, which takes a while
    if (!turn) return;
    const StackText& text = unwinder_.unwind(copy);
    const SampledStack head{copy.tid, copy.stands_for, is_by_wall_time() ? 1u : 0u, text.frames.size()};
    turn.put(kNativeStack, copy.time, sizeof head + text.frames.size() + text.places.size(), [&](char* at) {
        std::memcpy(at, &head, sizeof head);
        std::memcpy(at + sizeof head, text.frames.data(), text.frames.size());
        append(at + sizeof head + text.frames.size(), text.places.data(), text.places.size());
    });
}

// Never deleted: the process may end anywhere, and signals may still be on their way.
NativeSampler* g_native_sampler = nullptr;

void sample_native_stacks() {
    g_native_sampler = new NativeSampler;
    g_native_sampler->run();
}

SamplingThread g_native_thread("rocpd-native", sample_native_stacks);

}  // namespace

void start_native_sampling() {
    if (native_hz() <= 0) return;
    if (const std::string why = SampledThreads::prepare(); !why.empty()) return say(why);
    DebugLines::is_possible();  // loads the library here: where the thread does it, a fork could find the loader at
                                // work
    g_native_thread.start();
}

void forget_native_sampling() {
    g_native_thread.forget();
    SampledThreads::copies().forget();
}

}  // namespace rocpd
