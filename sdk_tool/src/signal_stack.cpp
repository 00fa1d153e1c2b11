// A stack for the signals of each thread: its own may be used up, tiny or wild when a sample comes.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "config.h"
#include "live_memory.h"
#include "rocpd/recorder.h"

namespace rocpd {
namespace {

// Handlers of the program run there too: as much as Go or a sanitizer would take for its own.
constexpr std::size_t kSignalStack = 64 << 10;

// A library that found it in place may have unmapped it already, as sanitizers do where they end: then other memory may
// be there.
void take_back(void* stack) {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) != 0 || current.ss_sp != stack) return;
    current.ss_flags = SS_DISABLE;
    sigaltstack(&current, nullptr);
    munmap(static_cast<char*>(stack) - kPage, kPage + kSignalStack);
}

pthread_key_t thread_key() {
    static const pthread_key_t key = [] {
        pthread_key_t fresh{};
        pthread_key_create(&fresh, take_back);
        return fresh;
    }();
    return key;
}

}  // namespace
}  // namespace rocpd

using namespace rocpd;

extern "C" {

int rocpd_needs_signal_stacks(void) { return config().stacks_hz > 0 || config().stacks_wall_hz > 0 ? 1 : 0; }

void rocpd_give_signal_stack(void) {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    void* place = mmap(nullptr, kPage + kSignalStack, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) return;
    mprotect(place, kPage, PROT_NONE);  // a handler that needs more ends there, and not in other memory
    current = {};
    current.ss_sp = static_cast<char*>(place) + kPage;
    current.ss_size = kSignalStack;
    if (pthread_setspecific(thread_key(), current.ss_sp) != 0)
        munmap(place, kPage + kSignalStack);
    else
        sigaltstack(&current, nullptr);
}

}  // extern "C"
