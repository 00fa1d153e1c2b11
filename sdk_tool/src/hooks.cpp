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

// A function that a tool registered. Not called in a forked child, where the tool does not run.
template <typename Function>
class Hook {
public:
    void set(Function function) {
        pid_.store(getpid());
        function_.store(function);
    }
    template <typename... Arguments>
    void call(Arguments... arguments) const {
        if (pid_.load() != getpid()) return;
        if (const Function function = function_.load()) function(arguments...);
    }

private:
    std::atomic<pid_t> pid_{0};
    std::atomic<Function> function_{nullptr};
};

Hook<void (*)()> g_before_flush;
Hook<void (*)(std::uint64_t)> g_on_correlate;

}  // namespace

void deliver_held() { g_before_flush.call(); }

void pass_on_correlation(std::uint64_t id) { g_on_correlate.call(id); }

}  // namespace rocpd

using namespace rocpd;

extern "C" {

void rocpd_before_flush(void (*flush_pending)(void)) { g_before_flush.set(flush_pending); }

void rocpd_on_correlate(void (*correlate)(uint64_t id)) { g_on_correlate.set(correlate); }

int rocpd_expect_events(void) {
    if (!start_service()) return -1;
    catch_interrupt();
    return 0;
}

uint32_t rocpd_flush_ms(void) { return config().flush_ms; }

void rocpd_own_stack_ids_from(uint64_t first) { g_next_stack.store(first); }

}  // extern "C"
