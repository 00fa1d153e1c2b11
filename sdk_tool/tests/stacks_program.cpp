// Threads that spend half, three tenths and a fifth of their time in three places: known_half, which may be of a
// library that is loaded at run time, known_third, into which a function is inlined, and known_fifth, which calls
// itself.
//
// stacks_program THREADS ROUNDS [LIBRARY]
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "stacks_work.h"

extern "C" void known_half(int turns);

namespace {

using Work = void (*)(int);

Work half = known_half;

inline void known_inlined(int turns) { spin(turns); }

__attribute__((noinline)) void known_third(int turns) {
    known_inlined(turns);
    keep_frame();
}

__attribute__((noinline)) void known_fifth(int depth, int turns) {
    depth > 0 ? known_fifth(depth - 1, turns) : spin(turns);
    keep_frame();
}

__attribute__((noinline)) void known_thread(int rounds) {
    pthread_setname_np(pthread_self(), "known");
    for (; rounds > 0; --rounds) {
        half(500);
        known_third(300);
        known_fifth(30, 200);
    }
    keep_frame();
}

}  // namespace

int main(int, char** arguments) {
    const int rounds = std::atoi(arguments[2]);
    if (arguments[3] != nullptr) {
        void* library = dlopen(arguments[3], RTLD_NOW);
        if (library == nullptr) return 1;
        half = reinterpret_cast<Work>(dlsym(library, "known_half"));
    }
    std::vector<std::thread> threads;
    for (int i = std::atoi(arguments[1]); i > 0; --i) threads.emplace_back(known_thread, rounds);
    for (std::thread& thread : threads) thread.join();
}
