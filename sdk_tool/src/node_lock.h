// Chooses the process of a user that samples what a node has once: its GPUs, its disks. The first that asks holds it
// until it ends; where no lock can be had, everybody does.
#pragma once

#include <string>
#include <utility>

namespace rocpd {

class NodeLock {
public:
    explicit NodeLock(std::string name) : name_(std::move(name)) {}

    // Whether this process holds the lock; takes it when it is free.
    bool held();
    // To be called in a forked child: the lock is the parent's.
    void forget();

private:
    enum class State { kNotAsked, kHeld, kElsewhere };

    std::string name_;
    State state_ = State::kNotAsked;
    int file_ = -1;
    unsigned long long asked_ = 0;  // [ns]
};

}  // namespace rocpd
