// The threads whose stacks are sampled, and how a copy of each is taken.
//
// Each has a timer of its CPU time, whose signal takes the copy: it never comes while the thread waits, as a signal
// ends some waits early. By wall time, a thread that waits is copied from outside; the timer of one that runs is set to
// soon.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "stack_copies.h"

namespace rocpd {

// A sampled thread. Not freed while a signal may still be on its way.
struct SampledThread {
    int tid = 0;
    clockid_t clock = 0;        // of its CPU time
    bool has_timer = false;
    timer_t timer{};
    bool is_wall = false;
    std::uint64_t period = 0;   // [ns]
    std::uint64_t due = 0;      // the next sample [ns of the thread's CPU time]
    std::uint64_t chance = 0;   // state of a generator of random numbers
    std::atomic<std::uint64_t> python{0};  // its state in Python, where it was seen last
    std::atomic<bool> is_sampled{false};
    std::atomic<std::uint64_t> asked{0};  // wall time in which it ran and was not sampled [ns]
};

// Returns a distance that is one period on average: samples at equal distances would always meet the same place of a
// program that repeats itself as often.
std::uint64_t random_distance(std::uint64_t period, std::uint64_t& chance);

class SampledThreads {
public:
    // Takes a real-time signal that nobody uses, and memory for copies. Returns why not, "" where all is there.
    static std::string prepare();
    // Whether the signal is still ours: a program may take all signals.
    static bool has_signal();
    static int signal_number();
    static StackCopies& copies();

    SampledThreads(double hz, bool is_wall);
    ~SampledThreads();

    std::uint64_t period() const { return period_; }
    // Looks for new threads and ended ones.
    void look();
    void stop();
    // By wall time: takes a copy of each, which stands for so much time [ns].
    void sample(std::uint64_t stands_for);

private:
    class Chosen;
    struct Known {
        std::unique_ptr<SampledThread> thread;  // null: not sampled
        unsigned seen = 0;                      // in which look
    };

    std::unique_ptr<SampledThread> begin(int tid);
    bool start_timer(SampledThread& thread);
    void end(std::unique_ptr<SampledThread> thread);

    const std::uint64_t period_;  // [ns]
    const bool is_wall_;
    std::unique_ptr<Chosen> chosen_;
    std::unordered_map<int, Known> threads_;  // by tid
    std::deque<std::pair<unsigned, std::unique_ptr<SampledThread>>> ended_;  // in which look
    unsigned looks_ = 0;
};

}  // namespace rocpd
