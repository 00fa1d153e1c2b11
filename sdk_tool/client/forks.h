// Makes a fork safe while other threads are in calls. A lock that one of them holds is held in the child for
// ever, and what it was changing stays half changed. So those threads wait while a thread forks, where they hold no
// lock; the client's own locks are taken before; and whether the SDK's are free is tried in the child.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "sdk.h"

namespace rocpd::client {

// A lock that no other thread holds at a fork. Never destroyed, and never held while another of its kind is taken.
class ForkMutex {
public:
    ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    friend void lock_all();
    friend void unlock_all();

    std::mutex mutex_;
    ForkMutex* earlier_;
};

// Held while records are delivered or taken: no thread is in the middle of that at a fork.
class Delivery {
public:
    Delivery();
    ~Delivery();
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;
};

extern std::atomic<int> g_forks;  // threads that are forking
extern thread_local bool t_calls;  // the calling thread has made a call of the SDK's

void count_caller();
void wait_for_forks();

// The first thing in a callback that the SDK makes in a thread of the program: it waits there, some 20 ms at most,
// while another thread forks.
inline void pass_forks() {
    if (!t_calls) count_caller();
    if (g_forks.load(std::memory_order_relaxed) > 0) wait_for_forks();
}

// Prepares for trying the SDK's locks in forked children; to be called while the client sets itself up.
void prepare_trial();

// The text of the mark by which they are tried; it is not recorded.
extern const char kTrial[];

void before_fork();
void after_fork_in_parent();

// Returns whether calls can be traced in this child: false where a lock of the SDK, or of what the client knows, was
// held.
bool after_fork_in_child();

// For a child with a lock of the SDK held: the SDK would wait for it at exit. Ends the process after two seconds of
// that.
void limit_exit();

}  // namespace rocpd::client
