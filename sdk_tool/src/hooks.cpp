#include "hooks.h"

#include <unistd.h>

#include <atomic>

#include "config.h"
#include "lifecycle.h"
#include "ranges.h"
#include "rocpd/recorder.h"
#include "signals.h"

namespace rocpd {
namespace {

// A function that a tool registered, and for which process: a forked child registers its own.
std::atomic<pid_t> g_pid{0};
std::atomic<void (*)()> g_before_flush{nullptr};

}  // namespace

void deliver_held() {
    if (g_pid.load() != getpid()) return;
    if (void (*const flush_pending)() = g_before_flush.load()) flush_pending();
}

}  // namespace rocpd

using namespace rocpd;

extern "C" {

void rocpd_before_flush(void (*flush_pending)(void)) {
    g_pid.store(getpid());
    g_before_flush.store(flush_pending);
}

int rocpd_expect_events(void) {
    if (!start_service()) return -1;
    catch_interrupt();
    return 0;
}

uint32_t rocpd_flush_ms(void) { return config().flush_ms; }

void rocpd_own_stack_ids_from(uint64_t first) { g_next_stack.store(first); }

}  // extern "C"
