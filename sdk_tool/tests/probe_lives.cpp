#include "probe.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace probe {
namespace {

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
            usleep(5000);  // so slow that time says when they are written, not how many there are
        }
    });
    return kCode;
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

// Holds its own file open while the recorder opens it anew, and closes it in the middle of a transaction.
int reads_own_file(const Arguments&) {
    ranges(100);
    rocpd_flush();
    rocpd_status_t status{};
    rocpd_status(&status);
    for (int i = 3; i < 256; ++i) close(i);
    const auto open_as = [&](int least) {
        const int low = open(status.file, O_RDONLY);
        const int descriptor = fcntl(low, F_DUPFD, least);
        close(low);
        return descriptor;
    };
    const int reader = open_as(100), own = open_as(200);
    ranges(100);
    rocpd_flush();
    struct flock readers {};  // those bytes that whoever reads an SQLite database locks
    readers.l_type = F_RDLCK;
    readers.l_start = 0x40000002;
    readers.l_len = 510;
    if (own < 0 || fcntl(reader, F_OFD_SETLK, &readers) != 0) return 1;
    ranges(100);
    const std::string journal = std::string(status.file) + "-journal";
    for (int waited = 0; access(journal.c_str(), F_OK) != 0; ++waited) {  // the transaction then waits for the reader
        if (waited == 10000) return 1;
        usleep(1000);
    }
    close(own);
    usleep(200000);  // the recorder tries again meanwhile
    close(reader);
    rocpd_flush();
    ranges(100);
    rocpd_finalize();
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

// Records and forks for each line of stdin, then prints how long the fork took [ms].
int forks_when_asked(const Arguments&) {
    ranges(10);
    rocpd_flush();
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        ranges(10, "asked");
        usleep(100000);  // the writer has started to write them
        const std::uint64_t start = rocpd_now();
        const pid_t child = fork();
        if (child == 0) _exit(0);
        std::printf("%llu\n", static_cast<unsigned long long>((rocpd_now() - start) / 1000000));
        std::fflush(stdout);
        int status = 0;
        waitpid(child, &status, 0);
    }
    return kCode;
}

// COUNT SECONDS: switches recording off and on so often, then lives on for a while.
int toggles(const Arguments& a) {
    ranges(1);
    for (int i = 0; i < std::stoi(a.at(0)); ++i) {
        rocpd_stop();
        rocpd_start();
    }
    usleep(static_cast<useconds_t>(std::stod(a.at(1)) * 1e6));
    return kCode;
}

// Changes the environment as shells do, with memory of its own, while the recorder's threads start.
int environment(const Arguments&) {
    for (int i = 0; i < 2000; ++i) {
        auto** changed = new char*[3]{strdup("A=1"), strdup("B=2"), nullptr};
        char** const before = std::exchange(environ, changed);
        if (i > 0) {
            std::free(before[0]);
            std::free(before[1]);
            delete[] before;
        }
        usleep(50);
    }
    return kCode;
}

// HOW: enters a collective that does not end, in a call; then waits until it is killed, or ends well.
int waits_for_others(const Arguments& a) {
    ranges(10);
    const int group = rocpd_group(77, 4, 2, "world");
    for (int i = 0; i < 3; ++i) {
        rocpd_group_leave(group, rocpd_group_enter(group, "ncclAllReduce", 4096), "ncclAllReduce");
    }
    rocpd_group_enter(group, "ncclAllGather", 512);
    rocpd_call_begin("hipStreamSynchronize", 77);
    rocpd_call_begin("hsa_signal_wait", 0);
    rocpd_call_end();
    rocpd_flush();
    while (a.at(0) == "until-killed") usleep(10000);
    rocpd_call_end();
    return kCode;
}

// Enters and leaves collectives until it is killed.
int exchanges(const Arguments&) {
    ranges(10);
    const int group = rocpd_group(77, 4, 2, "world");
    for (;;) {
        rocpd_call_begin("ncclAllReduce", 77);
        const std::uint64_t number = rocpd_group_enter(group, "ncclAllReduce", 4096);
        rocpd_call_end();
        rocpd_group_leave(group, number, "ncclAllReduce");
    }
}

// Recording is off at first: names its thread then, and records when asked to by an argument.
int named(const Arguments& a) {
    roctxNameOsThread("named while off");
    rocpd_flush();
    if (a.empty()) return kCode;
    rocpd_start();
    ranges(1);
    return kCode;
}

// A thread that records for the first time when there is no memory left.
int unbuffered(const Arguments&) {
    std::atomic<bool> go{false};
    std::thread late([&] {
        while (!go) usleep(100);
        for (int i = 0; i < 10; ++i) rocpd_mark("late", 4);
    });
    ranges(1);
    rocpd_flush();
    const rlimit nothing{1, 1};
    setrlimit(RLIMIT_AS, &nothing);
    go = true;
    late.join();
    return kCode;
}

}  // namespace

Scenarios ways_to_live() {
    return {
        {"threads", threads},
        {"numbered", numbered},
        {"closes", closes_descriptors},
        {"reads-own", reads_own_file},
        {"until-eof", until_eof},
        {"burst", burst},
        {"waits", waits},
        {"forks-when-asked", forks_when_asked},
        {"toggles", toggles},
        {"environment", environment},
        {"waits-for-others", waits_for_others},
        {"exchanges", exchanges},
        {"named", named},
        {"unbuffered", unbuffered},
    };
}

}  // namespace probe
