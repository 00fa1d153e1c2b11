// A program to be recorded and mistreated: each scenario is one way in which a process lives or ends.
//
// usage: probe SCENARIO [ARGUMENTS]; exits with 7 where the scenario does not say otherwise.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "rocpd/recorder.h"

extern "C" {
int roctxRangePushA(const char* message);
int roctxRangePop();
void roctxMarkA(const char* message);
uint64_t roctxRangeStartA(const char* message);
void roctxRangeStop(uint64_t id);
int roctxProfilerPause(uint64_t tid);
int roctxProfilerResume(uint64_t tid);
int roctxNameOsThread(const char* name);
}

namespace {

using Arguments = std::vector<std::string>;
constexpr int kCode = 7;

void ranges(int count, const char* text = "range") {
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

// THREADS EVENTS: that many ranges per thread, every second one inside another.
int threads(const Arguments& a) {
    const int events = std::stoi(a.at(1));
    run_threads(std::stoi(a.at(0)), [events](int) {
        for (int i = 0; i < events / 2; ++i) {
            roctxRangePushA("outer");
            roctxRangePushA("inner");
            roctxRangePop();
            roctxRangePop();
        }
    });
    return kCode;
}

// THREADS: numbered ranges until the process is killed; the text is the number in its thread.
int numbered(const Arguments& a) {
    run_threads(std::stoi(a.at(0)), [](int thread) {
        roctxNameOsThread(("numbered " + std::to_string(thread)).c_str());
        for (long i = 0;; ++i) {
            roctxRangePushA(std::to_string(i).c_str());
            roctxRangePop();
            if (i % 20 == 0) usleep(1000);
        }
    });
    return kCode;
}

// HOW: 100 ranges, then this way out.
int ends(const Arguments& a) {
    const std::string how = a.at(0);
    roctxRangePushA("open");
    ranges(100);
    std::fflush(stdout);
    if (how == "exit") std::exit(kCode);
    if (how == "_exit") _exit(kCode);
    if (how == "_Exit") std::_Exit(kCode);
    if (how == "quick_exit") std::quick_exit(kCode);
    if (how == "abort") std::abort();
    if (how == "term") raise(SIGTERM);
    if (how == "int") raise(SIGINT);
    if (how == "kill") raise(SIGKILL);
    if (how == "exec") execl("/proc/self/exe", "probe", "ends", "exit", nullptr);
    if (how == "execfail") {
        execl("/nonexistent/program", "probe", nullptr);
        ranges(100);
    }
    if (how == "thread") std::thread([] { std::exit(kCode); }).join();
    return kCode;
}

// 100 ranges each: the process, a child that exits, one that _exits, a grandchild; a child that records nothing.
int forks(const Arguments&) {
    ranges(100, "parent");
    for (const int kind : {0, 1, 2, 3}) {
        const pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            if (kind < 3) ranges(100, "child");
            if (kind == 2 && fork() == 0) {
                ranges(100, "grandchild");
                std::exit(0);
            }
            if (kind == 2) wait(nullptr);
            if (kind == 0) std::exit(0);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    ranges(100, "parent");
    return kCode;
}

// COUNT: forks while other threads record.
int fork_storm(const Arguments& a) {
    std::atomic<bool> stop{false};
    std::thread forker([&] {
        for (int i = 0; i < std::stoi(a.at(0)); ++i) {
            const pid_t child = fork();
            if (child == 0) {
                ranges(10, "child");
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (status != 0) std::abort();
        }
        stop = true;
    });
    run_threads(2, [&](int) {
        while (!stop) ranges(50, "parent");
    });
    forker.join();
    return kCode;
}

// A child of vfork() shares our memory and ends with _exit: our file must stay open.
int vforks(const Arguments&) {
    ranges(100);
    for (int i = 0; i < 5; ++i) {
        const pid_t child = vfork();
        if (child == 0) _exit(3);
        int status = 0;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 3) return 1;
    }
    ranges(100);
    return kCode;
}

// Everything that ends the recorder, at once.
int finalize(const Arguments&) {
    ranges(1000);
    std::atexit([] { rocpd_finalize(); });
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t)
        all.emplace_back([t] {
            ranges(100);
            if (t % 2 == 0) rocpd_finalize();
            ranges(100);
            rocpd_start();
            rocpd_flush();
        });
    for (std::thread& thread : all) thread.join();
    rocpd_finalize();
    rocpd_finalize();
    ranges(10);
    return kCode;
}

// Ends by exit and by signal at the same time.
int finalize_race(const Arguments&) {
    ranges(20000);
    std::thread([] { kill(getpid(), SIGTERM); }).detach();
    std::exit(kCode);
}

// FILE: closes all descriptors as daemons do, then writes a file of its own that must stay whole.
int closes_descriptors(const Arguments& a) {
    ranges(100);
    rocpd_flush();
    for (int i = 3; i < 256; ++i) close(i);
    std::vector<int> own;
    for (int i = 0; i < 8; ++i) {
        own.push_back(open((a.at(0) + std::to_string(i)).c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600));
        if (write(own.back(), "mine", 4) != 4) return 1;
    }
    ranges(100);
    rocpd_flush();
    ranges(100);
    rocpd_finalize();
    for (const int file : own) {
        char text[16] = "";
        if (lseek(file, 0, SEEK_END) != 4 || pread(file, text, sizeof text, 0) != 4) return 1;
        if (std::strcmp(text, "mine") != 0) return 1;
    }
    return kCode;
}

// Records until stdin ends.
int until_eof(const Arguments&) {
    std::atomic<bool> stop{false};
    std::thread recorder([&] {
        while (!stop) {
            ranges(20);
            usleep(1000);
        }
    });
    ranges(1);
    rocpd_flush();
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    stop = true;
    recorder.join();
    ranges(100);
    return kCode;
}

// COUNT: as fast as possible, more than a buffer holds.
int burst(const Arguments& a) {
    ranges(std::stoi(a.at(0)));
    return kCode;
}

// Ranges that cross pauses, threads and the end; unbalanced ends; a mark; depth beyond what is kept.
int odd_ranges(const Arguments&) {
    roctxRangePop();
    roctxRangePushA("before pause");
    roctxProfilerPause(0);
    roctxRangePushA("in pause");
    roctxRangePop();
    roctxMarkA("in pause");
    roctxRangePop();
    roctxProfilerResume(0);
    roctxRangePop();
    roctxMarkA("mark");
    const uint64_t id = roctxRangeStartA("across threads");
    std::thread([id] { roctxRangeStop(id); }).join();
    roctxRangeStop(id + 1000000);
    roctxRangeStartA("never stopped");
    for (int i = 0; i < 5000; ++i) roctxRangePushA("deep");
    for (int i = 0; i < 5000; ++i) roctxRangePop();
    roctxRangePushA("\"quotes\" \\ \n \xff\xfe ünï");
    roctxRangePop();
    const std::string large(100000, 'x');
    roctxRangePushA(large.c_str());
    roctxRangePop();
    std::thread([] { roctxRangePushA("thread ended"); }).join();
    return kCode;
}

// A pause before anything, then on from outside: prints ready, waits for stdin.
int waits(const Arguments&) {
    ranges(10, "early");
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        ranges(10, "asked");
        std::puts("done");
        std::fflush(stdout);
    }
    return kCode;
}

rocpd_text_t text(const char* s) { return rocpd_text(s, std::strlen(s)); }

// One of every kind of event, two dispatches with counters that come early and late.
int kinds(const Arguments&) {
    rocpd_start();
    const rocpd_agent_t cpu{0, "CPU", 0, 0, 0, 11, "EPYC", "model", "AMD", "EPYC", "cpu", nullptr};
    const rocpd_agent_t gpu{1, "GPU", 1, 1, 0, 12, "gfx942", "model", "AMD", "MI300X", "gpu", "{\"cu_count\":304}"};
    rocpd_register_agent(&cpu);
    rocpd_register_agent(&gpu);
    rocpd_register_queue(16, "Queue 0");
    rocpd_register_stream(0, "Default Stream");
    const rocpd_code_object_t object{1, 1, "file:///a", 4096, 100, 4096, "FILE", nullptr};
    rocpd_register_code_object(&object);
    rocpd_kernel_symbol_t symbol{};
    symbol.id = 1;
    symbol.code_object_id = 1;
    symbol.kernel_name = "kernel.kd";
    symbol.display_name = "kernel";
    rocpd_register_kernel_symbol(&symbol);
    rocpd_counter_t counter{};
    counter.id = 5;
    counter.agent_id = 1;
    counter.target_arch = "GPU";
    counter.name = "SQ_WAVES";
    counter.value_type = "ABS";
    rocpd_register_counter(&counter);

    rocpd_counter_value(1, 5, 64.0);
    rocpd_region_t region{};
    region.event.category = text("HIP_RUNTIME_API_EXT");
    region.event.stack_id = 100;
    region.event.correlation_id = 9;
    region.name = text("hipLaunchKernel");
    region.start = 1000;
    region.end = 2000;
    const rocpd_argument_t arguments[] = {{text("int"), text("n"), "42", 2}, {text("char*"), text("s"), "a\"b", 3}};
    region.arguments = arguments;
    region.argument_count = 2;
    rocpd_region(&region);
    for (int i = 1; i <= 3; ++i) {
        rocpd_dispatch_t d{};
        d.event.category = text("KERNEL_DISPATCH");
        d.event.stack_id = d.event.parent_stack_id = 100;
        d.agent_id = i < 3 ? 1 : 77;  // the third refers to things that nobody registered
        d.kernel_id = i < 3 ? 1 : 78;
        d.queue_id = i < 3 ? 16 : 79;
        d.stream_id = i < 3 ? 0 : 80;
        d.dispatch_id = i;
        d.start = 1500;
        d.end = 1600;
        d.workgroup_size[0] = d.workgroup_size[1] = d.workgroup_size[2] = 1;
        d.grid_size[0] = d.grid_size[1] = d.grid_size[2] = 64;
        d.region_name = i == 2 ? text("step") : 0;
        rocpd_dispatch(&d);
    }
    rocpd_counter_value(2, 5, 65.0);
    rocpd_copy_t copy{};
    copy.event.category = text("MEMORY_COPY");
    copy.event.tid = 4242;
    copy.name = text("MEMORY_COPY_HOST_TO_DEVICE");
    copy.start = 3000;
    copy.end = 3100;
    copy.dst_agent_id = 1;
    copy.src_agent_id = -1;
    copy.size = 1 << 20;
    copy.queue_id = copy.stream_id = -1;
    rocpd_copy(&copy);
    rocpd_allocation_t allocation{};
    allocation.event.category = text("MEMORY_ALLOCATION");
    allocation.event.message = "FINE_GRAINED";
    allocation.event.message_size = 12;
    allocation.type = ROCPD_FREE;
    allocation.level = ROCPD_VIRTUAL;
    allocation.start = 1;
    allocation.end = 2;
    allocation.agent_id = 1;
    allocation.address = 0xffffffffffffff00u;
    allocation.queue_id = allocation.stream_id = -1;
    rocpd_allocation(&allocation);
    rocpd_sample(rocpd_register_track("temperature"), 5000, 5, 36.6);
    rocpd_note("note", "it's \"quoted\"");
    return kCode;
}

const std::map<std::string, int (*)(const Arguments&)> kScenarios = {
    {"threads", threads},   {"numbered", numbered},       {"ends", ends},
    {"forks", forks},       {"fork-storm", fork_storm},   {"vforks", vforks},
    {"finalize", finalize}, {"race", finalize_race},      {"closes", closes_descriptors},
    {"until-eof", until_eof}, {"burst", burst},           {"odd", odd_ranges},
    {"waits", waits},       {"kinds", kinds},
};

}  // namespace

int main(int argc, char** argv) {
    const auto found = kScenarios.find(argc > 1 ? argv[1] : "");
    if (found == kScenarios.end()) {
        for (const auto& scenario : kScenarios) std::fprintf(stderr, "probe %s\n", scenario.first.c_str());
        return 2;
    }
    return found->second(Arguments(argv + 2, argv + argc));
}
