// A program to be recorded and mistreated.
//
// usage: probe SCENARIO [ARGUMENTS]; exits with 7 where the scenario does not say otherwise.
#include "probe.h"

#include <cstdio>
#include <thread>

namespace probe {

void ranges(int count, const char* text) {
    for (int i = 0; i < count; ++i) {
        roctxRangePushA(text);
        roctxRangePop();
    }
}

void run_threads(int threads, const std::function<void(int)>& body) {
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) all.emplace_back(body, t);
    for (std::thread& thread : all) thread.join();
}

}  // namespace probe

int main(int argc, char** argv) {
    for (const probe::Scenarios& some : {probe::ways_to_live(), probe::ways_to_end(), probe::kinds_of_events()}) {
        const auto found = some.find(argc > 1 ? argv[1] : "");
        if (found != some.end()) return found->second(probe::Arguments(argv + 2, argv + argc));
    }
    std::fprintf(stderr, "probe: no such scenario\n");
    return 2;
}
