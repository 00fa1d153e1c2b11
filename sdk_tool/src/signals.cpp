#include "signals.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "config.h"
#include "hooks.h"
#include "lifecycle.h"
#include "live_state.h"
#include "state.h"

namespace rocpd {
namespace {

void ended_by(int number) {
    const int saved = errno;
    live::stay();
    deliver_held();
    // The interrupted thread may hold a lock that the writer needs: wait only while the writer makes progress.
    finish(1000);
    errno = saved;
    signal(number, SIG_DFL);
    raise(number);  // delivered when this handler returns: the parent sees the true cause
}

void take_over(int number) {
    if (!is_unhandled(number)) return;
    struct sigaction ours {};
    ours.sa_handler = ended_by;
    sigemptyset(&ours.sa_mask);
    ours.sa_flags = SA_RESTART;
    sigaction(number, &ours, nullptr);
}

}  // namespace

bool is_unhandled(int number) {
    struct sigaction current {};
    return sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
           current.sa_handler == SIG_DFL;
}

void catch_signals() {
    if (!config().signals) return;
    for (const int number : {SIGTERM, SIGHUP, SIGABRT}) take_over(number);
}

void catch_interrupt() {
    if (config().signals) take_over(SIGINT);
}

}  // namespace rocpd
