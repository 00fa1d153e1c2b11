#include "probe.h"

#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace probe {
namespace {

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
    if (how == "abrt") kill(getpid(), SIGABRT);  // from outside, not by abort()
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

// Forks while another thread records its first event: its writer starts in the middle of it.
int fork_first(const Arguments&) {
    std::atomic<bool> starting{false};
    std::thread recorder([&] {
        starting = true;
        ranges(1000);
    });
    while (!starting) {
    }
    usleep(100);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    recorder.join();
    return status == 0 ? kCode : 1;
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

void run_true() {
    const pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", nullptr);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

// COUNT: children of vfork() that run another program; what they allocate would be the parent's for ever.
int vfork_execs(const Arguments& a) {
    ranges(1);
    rocpd_flush();
    run_true();
    const std::size_t before = mallinfo2().uordblks;
    for (int i = 0; i < std::stoi(a.at(0)); ++i) run_true();
    return mallinfo2().uordblks < before + 8192 ? kCode : 1;
}

// COUNT: children in which the first event and the end come at once: closed is closed.
int finalize_first(const Arguments& a) {
    for (int i = 0; i < std::stoi(a.at(0)); ++i) {
        const pid_t child = fork();
        if (child == 0) {
            std::atomic<bool> starting{false};
            std::thread recorder([&] {
                starting = true;
                ranges(1);
            });
            while (!starting) {
            }
            usleep(static_cast<useconds_t>(10 * (i % 20)));
            rocpd_finalize();
            recorder.join();
            rocpd_status_t status{};
            rocpd_status(&status);
            _exit(status.closed == 1 && rocpd_mark("late", 4) == -1 ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
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

}  // namespace

Scenarios ways_to_end() {
    return {
        {"ends", ends}, {"forks", forks}, {"fork-first", fork_first}, {"fork-storm", fork_storm}, {"vforks", vforks},
        {"vfork-execs", vfork_execs}, {"finalize", finalize}, {"finalize-first", finalize_first},
        {"race", finalize_race},
    };
}

}  // namespace probe
