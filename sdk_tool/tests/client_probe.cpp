// An application on the stand-in SDK: threads that do GPU work. Run with librocpd-tool.so preloaded.
//
// usage: client_probe THREADS ROUNDS [pause|_exit|exit|twice|old]; exits with 7.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "standin_sdk.h"

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string how = argc > 3 ? argv[3] : "";
    if (how == "old") return standin::start(700) ? 1 : 7;
    if (!standin::start()) return 1;
    const int rounds = std::atoi(argv[2]);
    const auto play = [rounds] { standin::work(rounds); };
    std::vector<std::thread> threads;
    for (int t = 0; t < std::atoi(argv[1]); ++t) threads.emplace_back(play);
    for (std::thread& thread : threads) thread.join();
    if (how == "pause") {
        standin::pause();
        standin::work(rounds);
        standin::resume();
        standin::work(1);
    }
    if (how == "_exit") _exit(7);
    if (how == "exit") std::exit(7);
    standin::finish();
    if (how == "twice") standin::finish();
    return 7;
}
