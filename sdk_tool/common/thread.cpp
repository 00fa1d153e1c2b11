#include "thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "futex.h"

namespace rocpd {
namespace {

struct Start {
    void* (*body)(void*);
    void* argument;
    std::atomic<std::uint32_t> is_apart{0};
};

void* run_apart(void* given) {
    Start& start = *static_cast<Start*>(given);
    void* (*const body)(void*) = start.body;
    void* const argument = start.argument;
    unshare(CLONE_FS);
    std::atomic<std::uint32_t>& is_apart = start.is_apart;
    is_apart.store(1);  // from now on `start` may be gone: only its address is used
    futex_wake(is_apart);
    return body(argument);
}

}  // namespace

bool start_detached(void* (*body)(void*), void* argument) {
    Start start{body, argument};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread{};
    const int error = pthread_create(&thread, nullptr, run_apart, &start);  // the new thread inherits the mask
    if (error == 0) pthread_detach(thread);
    while (error == 0 && start.is_apart.load() == 0) futex_wait(start.is_apart, 0, 1000);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error == 0;
}

}  // namespace rocpd
