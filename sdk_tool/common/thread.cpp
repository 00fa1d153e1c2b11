#include "thread.h"

#include <pthread.h>
#include <signal.h>

namespace rocpd {

bool start_detached(void* (*body)(void*), void* argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread{};
    const int error = pthread_create(&thread, nullptr, body, argument);  // the new thread inherits the mask
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == 0) pthread_detach(thread);
    return error == 0;
}

}  // namespace rocpd
