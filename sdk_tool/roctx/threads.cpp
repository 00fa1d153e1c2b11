// The start of threads: where call stacks are sampled, each gets a stack for its signals, as its own may be used up,
// tiny or wild when a sample comes. Effective only when preloaded.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "rocpd/recorder.h"

namespace {

using Body = void* (*)(void*);
using Create = int (*)(pthread_t*, const pthread_attr_t*, Body, void*);

// A thread may begin here before a sanitizer knows it: nothing may be checked, and only the kernel be called.
#define ROCPD_UNCHECKED __attribute__((no_sanitize("thread", "address")))

// Handlers of the program run there too: as much as Go or a sanitizer would take for its own.
constexpr std::size_t kSignalStack = 64 << 10, kGuard = 4096;

// What a thread is to run: at the low end of its stack for signals, whose handlers begin at the high end.
struct Begun {
    Body body;
    void* argument;
};

ROCPD_UNCHECKED void unmap(void* stack) {
    syscall(SYS_munmap, static_cast<char*>(stack) - kGuard, kGuard + kSignalStack);
}

// A library that found it in place may have unmapped it already, as sanitizers do where they end: then other memory may
// be there.
void take_back(void* stack) {
    stack_t current{};
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) != 0 || current.ss_sp != stack) return;
    current.ss_flags = SS_DISABLE;
    sigaltstack(&current, nullptr);
    unmap(stack);
}

// The C library's own, looked up at load at the latest: threads start while other locks are held.
Create next_create() {
    static const auto only = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    return only;
}

pthread_key_t g_stack_key;
bool g_has_key = false;

// Returns nullptr where there is no memory.
void* new_stack() {
    void* place = mmap(nullptr, kGuard + kSignalStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (place == MAP_FAILED) return nullptr;
    mprotect(place, kGuard, PROT_NONE);  // a handler that needs more ends there, and not in other memory
    return static_cast<char*>(place) + kGuard;
}

// Gives the calling thread a stack until it ends, unless it has one; one that the program sets later takes its place.
// Inlined, its local variable would keep `begin` from ending in a jump.
ROCPD_UNCHECKED __attribute__((noinline)) void use_stack(void* stack) {
    stack_t current;
    syscall(SYS_sigaltstack, nullptr, &current);
    if ((current.ss_flags & SS_DISABLE) == 0 || pthread_setspecific(g_stack_key, stack) != 0) return unmap(stack);
    current.ss_sp = stack;
    current.ss_size = kSignalStack;
    current.ss_flags = 0;
    syscall(SYS_sigaltstack, &current, nullptr);
}

// Ends in a jump: the stacks of threads look as they do otherwise.
ROCPD_UNCHECKED void* begin(void* stack) {
    Begun* const given = static_cast<Begun*>(stack);
    const Body body = given->body;
    void* const argument = given->argument;
    use_stack(stack);
    return body(argument);
}

__attribute__((constructor)) void at_start() {
    next_create();
    g_has_key = pthread_key_create(&g_stack_key, take_back) == 0;
    void* stack = g_has_key && rocpd_needs_signal_stacks() ? new_stack() : nullptr;
    if (stack != nullptr) use_stack(stack);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* how,
                                                                      Body body, void* argument) {
    const Create create = next_create();
    void* stack = g_has_key && rocpd_needs_signal_stacks() ? new_stack() : nullptr;
    if (stack == nullptr) return create(thread, how, body, argument);
    *static_cast<Begun*>(stack) = {body, argument};
    const int error = create(thread, how, begin, stack);
    if (error != 0) unmap(stack);
    return error;
}
