#include "node_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "clock.h"
#include "config.h"
#include "control.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kAskAgain = 1000000000;  // [ns]: its holder may have ended

}  // namespace

bool NodeLock::held() {
    if (state_ == State::kHeld) return true;
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (state_ == State::kElsewhere && now - asked_ < kAskAgain) return false;
    asked_ = now;
    state_ = State::kHeld;
    const std::string folder = config().control_folder;
    if (!problem_with(folder).empty()) return true;
    file_ = open((folder + "/" + name_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(file_);
        file_ = -1;
        state_ = State::kElsewhere;
    }
    return state_ == State::kHeld;
}

void NodeLock::forget() {
    if (file_ >= 0) close(file_);
    file_ = -1;
    state_ = State::kNotAsked;
}

}  // namespace rocpd
