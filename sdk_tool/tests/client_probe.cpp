// An application on the stand-in SDK: threads that do GPU work. Run with librocpd-tool.so preloaded.
//
// usage: client_probe THREADS ROUNDS [SCENARIO]; exits with 7.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "standin_sdk.h"

namespace {

constexpr int kCode = 7;

// A function of the recorder, which the preloaded client brings along.
template <typename Function>
Function* recorder(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function*>(found);
}

void pause(int rounds) {
    standin::pause();
    standin::work(rounds);
    standin::resume();
    standin::work(1);
}

// Each round has its number as external correlation id, but for the last.
void correlate(int rounds) {
    auto* const correlate = recorder<int(std::uint64_t)>("rocpd_correlate");
    for (int round = 1; round <= rounds; ++round) {
        correlate(static_cast<std::uint64_t>(1000 + round));
        standin::work(1);
    }
    correlate(0);
    standin::work(1);
}

void graph(int rounds) {
    standin::graph(rounds);
    standin::graph(1);
}

// Off and on again by the recorder, not by roctx; what happens meanwhile is not recorded.
void stop(int rounds) {
    recorder<int()>("rocpd_stop")();
    standin::work(rounds);
    recorder<int()>("rocpd_start")();
    standin::work(1);
}

void open(int) {
    standin::leave_open();
    standin::push("across");
    standin::pause();
    standin::pop();
    standin::resume();
    std::thread(standin::leave_open).join();
}

// Ranges around, in and after a pause.
void ranges(int) {
    standin::push("A");
    standin::pause();
    standin::push("B");
    standin::push("C");
    standin::pop();
    standin::pop();
    standin::resume();
    standin::mark("in A");
    standin::push("D");
    standin::pop();
    standin::pop();
    standin::mark("after A");
}

// Strings that are gone when the record of their call is read, and one that a call is to fill.
void strings(int) {
    const long page = sysconf(_SC_PAGESIZE);
    void* memory =
        mmap(nullptr, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* path = static_cast<char*>(memory);
    std::strcpy(path, "kernels.co");
    standin::load_module(path);
    munmap(memory, static_cast<std::size_t>(page));
    standin::load_module(nullptr);
    auto freed = std::make_unique<std::string>(200, 'x');
    standin::load_module(freed->c_str());
    freed.reset();
    standin::get_name(path);  // an address, no string
}

// Streams that the SDK does not know: made in a pause, and the one that each thread has.
void streams(int) {
    standin::pause();
    standin::create_stream(0x6000);
    standin::resume();
    standin::launch_on(0x6000);
    for (int i = 0; i < 2; ++i) standin::launch_on(standin::kStreamPerThread);
    std::thread([] { standin::launch_on(standin::kStreamPerThread); }).join();
    standin::create_stream(0x6000);  // the address is used again
    standin::launch_on(0x6000);
    standin::launch_on(0x8000);      // nobody saw it made
    standin::launch_on(0);
}

// Threads without an id of their own, while the main thread has one.
void inherit(int) {
    recorder<int(std::uint64_t)>("rocpd_correlate")(777);
    std::thread([] { standin::work(1); }).join();
    standin::work(1);
}

// Eight calls, none of which the SDK has delivered when the process ends.
void eight_calls() {
    for (int i = 0; i < 8; ++i) standin::call();
}

template <int Signal>
void signalled(int) {
    eight_calls();
    if (Signal == SIGABRT) std::abort();
    std::raise(Signal);
}

// Calls as fast as they come; prints the longest wait [ns] and the largest delivery [bytes].
void fast(int rounds) {
    for (int i = 0; i < 1000 * rounds; ++i) standin::call();
    std::printf("%llu %llu\n", static_cast<unsigned long long>(standin::longest_wait()),
                static_cast<unsigned long long>(standin::largest_delivery()));
}

void quickly(int) {
    eight_calls();
    std::quick_exit(kCode);
}

void forked(int) {
    eight_calls();
    const pid_t child = fork();
    if (child == 0) {
        eight_calls();
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

// The thread that sets t_stays stays where it is interrupted; it comes there when everybody else is ready for the fork.
std::atomic<bool> g_waits{false}, g_comes{false}, g_stays{false}, g_goes_on{false};
thread_local bool t_stays = false;

void let_it_come() {
    if (!g_waits.exchange(false)) return;
    g_comes.store(true);
    while (!g_stays.load()) usleep(1000);
}

void stay() {
    if (!t_stays) return;
    t_stays = false;
    g_stays.store(true);
    while (!g_goes_on.load()) usleep(1000);
}

// Kills a child that does not end, and ends with 1 then.
void wait_for(pid_t child) {
    int status = 0;
    for (int slice = 0; slice < 2000; ++slice, usleep(10000)) {
        if (waitpid(child, &status, WNOHANG) == 0) continue;
        if (status == 0) return;
        break;
    }
    kill(child, SIGKILL);
    _exit(1);
}

// Forks while another thread stays in the middle of a call.
void fork_beside(void (*interrupt)(void (*)())) {
    eight_calls();
    interrupt(stay);
    std::thread other([] {
        t_stays = true;
        g_waits.store(true);
        while (!g_comes.load()) usleep(1000);
        standin::call();
    });
    while (!g_waits.load()) usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
        eight_calls();
        std::exit(0);
    }
    wait_for(child);
    g_goes_on.store(true);
    other.join();
}

void fork_often(int forks) {
    for (int i = 0; i < forks; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            eight_calls();
            standin::launch_on(standin::kStream);
            std::exit(0);
        }
        wait_for(child);
    }
}

// Forks from two threads, beside others that call as fast as they can.
void storm(int forks) {
    std::atomic<bool> goes_on{true};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&goes_on] {
            while (goes_on.load()) standin::launch_on(standin::kStream);
        });
    std::thread second(fork_often, forks / 2);
    fork_often(forks - forks / 2);
    second.join();
    goes_on.store(false);
    for (std::thread& thread : threads) thread.join();
}

// Children of children.
void generations(int forks) {
    for (int generation = 0; generation < forks; ++generation) {
        eight_calls();
        const pid_t child = fork();
        if (child == 0) continue;
        wait_for(child);
        if (generation > 0) _exit(0);
        return;
    }
    eight_calls();
    _exit(0);
}

void names(int) {
    standin::name(ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread, "main thread");
    standin::name(ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice, "first GPU");
    for (int i = 0; i < 3; ++i) standin::name_stream("compute", standin::kStream);
    standin::name_stream("nobody's", 0x7777);
}

// One process of a job, as mpirun starts it: `steps` steps with two exchanges each. $ROCPD_STANDIN_MISSING=R:S: member
// R stays away from the all-reduce of step S, in no call.
void job(int steps) {
    const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
    const int member = number("OMPI_COMM_WORLD_RANK");
    const char* missing = std::getenv("ROCPD_STANDIN_MISSING");
    int who = -1, when = -1;
    if (missing != nullptr) std::sscanf(missing, "%d:%d", &who, &when);
    standin::init_comm(number("OMPI_COMM_WORLD_SIZE"), member);
    standin::capture_all_reduce();
    for (int step = 0; step < steps; ++step) {
        standin::push(("step " + std::to_string(step)).c_str());
        standin::launch_on(standin::kStream);
        standin::send_on();
        standin::synchronize();
        while (member == who && step == when) usleep(10000);
        standin::all_reduce();
        standin::synchronize();
        standin::pop();
        usleep(20000);
    }
    standin::destroy_comm();
}

// A signal arrives while the SDK has locked its buffer, and its handler ends the process.
void handler(int) {
    signal(SIGUSR1, [](int) { _exit(kCode); });
    standin::interrupt_puts([] { raise(SIGUSR1); });
    standin::work(1);
}

const std::map<std::string, std::function<void(int)>> kScenarios = {
    {"pause", pause},
    {"correlate", correlate},
    {"graph", graph},
    {"stop", stop},
    {"open", open},
    {"names", names},
    {"handler", handler},
    {"_exit", [](int) { _exit(kCode); }},
    {"twice", [](int) { standin::finish(); }},
    {"ranges", ranges},
    {"strings", strings},
    {"streams", streams},
    {"inherit", inherit},
    {"later", [](int) { standin::rare(); }},
    {"SIGTERM", signalled<SIGTERM>},
    {"SIGINT", signalled<SIGINT>},
    {"SIGHUP", signalled<SIGHUP>},
    {"SIGABRT", signalled<SIGABRT>},
    {"fast", fast},
    {"job", job},
    {"quick_exit", quickly},
    {"fork", forked},
    {"storm", storm},
    {"generations", generations},
    {"fork beside a put", [](int) { fork_beside(standin::interrupt_puts); }},
    {"fork beside a numbering", [](int) { fork_beside(standin::interrupt_numbering); }},
    {"number before", standin::work},
};

// What the SDK is like in scenarios of that name.
standin::Ways ways(const std::string& how) {
    standin::Ways chosen;
    chosen.as_calls = how == "calls";
    chosen.small_agents = how == "small agents";
    chosen.large_agents = chosen.appended = chosen.later = how == "later";
    chosen.no_agents = how == "no agents";
    chosen.other_counts = how == "other counts";
    return chosen;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string how = argc > 3 ? argv[3] : "";
    if (how == "old") return standin::start(700) ? 1 : kCode;
    standin::behave(ways(how));
    pthread_atfork(let_it_come, nullptr, nullptr);  // called after handlers that are registered later
    if (how == "early") {  // ranges long before the SDK sets its clients up
        recorder<int()>("rocpd_start")();
        for (int i = 0; i < 100; ++i) {
            recorder<int(const char*, std::size_t)>("rocpd_range_push")("early", 5);
            recorder<int()>("rocpd_range_pop")();
        }
        recorder<int()>("rocpd_flush")();
    }
    if (how == "number before") recorder<int(std::uint64_t)>("rocpd_correlate")(777);
    if (!standin::start()) return 1;
    const int rounds = std::atoi(argv[2]);
    std::vector<std::thread> threads;
    for (int t = 0; t < std::atoi(argv[1]); ++t) threads.emplace_back([rounds] { standin::work(rounds); });
    for (std::thread& thread : threads) thread.join();
    if (const auto scenario = kScenarios.find(how); scenario != kScenarios.end()) scenario->second(rounds);
    standin::finish();
    return kCode;
}
