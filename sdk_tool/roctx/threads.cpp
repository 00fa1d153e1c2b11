// The start of threads: each gets a stack for signals where call stacks are sampled. Effective only when preloaded.
#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>

#include "rocpd/recorder.h"

namespace {

using Body = void* (*)(void*);
using Create = int (*)(pthread_t*, const pthread_attr_t*, Body, void*);

// The C library's own, looked up at load: threads start while other locks are held.
Create next_create() {
    static const auto only = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    return only;
}

__attribute__((constructor)) void look_up_create() { next_create(); }

struct Begun {
    Body body;
    void* argument;
};

// Ends in a jump: the stacks of threads look as they do otherwise.
void* begin(void* given) {
    const Begun begun = *static_cast<Begun*>(given);
    std::free(given);
    rocpd_give_signal_stack();
    return begun.body(begun.argument);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* how,
                                                                      Body body, void* argument) {
    if (!rocpd_needs_signal_stacks()) return next_create()(thread, how, body, argument);
    auto* begun = static_cast<Begun*>(std::malloc(sizeof(Begun)));
    if (begun == nullptr) return EAGAIN;
    *begun = {body, argument};
    const int error = next_create()(thread, how, begin, begun);
    if (error != 0) std::free(begun);
    return error;
}
