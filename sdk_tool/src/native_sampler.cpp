#include "native_sampler.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "clock.h"
#include "config.h"
#include "debug_lines.h"
#include "live_memory.h"
#include "pace.h"
#include "recording.h"
#include "say.h"
#include "stack_copies.h"
#include "state.h"
#include "unwinder.h"

namespace rocpd {
namespace {

constexpr double kTurns = 50;             // a second, in which copies are unwound
constexpr unsigned kTurnsPerLook = 5;     // between looks at the threads
constexpr unsigned kLooksToEnd = 100;     // after which no signal of a deleted timer is on its way
constexpr unsigned kTurnsPerModules = 13; // between looks at the libraries

StackCopies g_copies;
std::atomic<int> g_signal{0};  // that the timers send
std::atomic<std::uint64_t> g_no_room{0};

#if defined(__x86_64__)

// Registers of a context by DWARF's numbers.
constexpr int kContextRegisters[cfi::kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                    REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

bool copy_registers(const void* context, cfi::Registers& registers) {
    const auto& all = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    for (unsigned i = 0; i < cfi::kRegisters; ++i)
        registers.value[i] = static_cast<std::uint64_t>(all[kContextRegisters[i]]);
    registers.known = (1u << cfi::kRegisters) - 1;
    return true;
}

constexpr bool kIsPossible = true;

#else

bool copy_registers(const void*, cfi::Registers&) { return false; }
constexpr bool kIsPossible = false;

#endif

// A sampled thread and its timer, which runs while the thread does. Not freed while a signal may still be on its way.
struct SampledThread {
    int tid = 0;
    timer_t timer{};
    std::uint64_t period = 0;  // [ns]
    std::uint64_t due = 0;     // the next sample [ns of the thread's CPU time]
    std::uint64_t chance = 0;  // state of a generator of random numbers
    std::atomic<bool> has_timer{false};
};

// Returns the time to the next sample, one period on average: samples at equal distances would always meet the same
// place of a program that repeats itself as often.
std::uint64_t next_distance(SampledThread& thread) {
    thread.chance ^= thread.chance << 13;
    thread.chance ^= thread.chance >> 7;
    thread.chance ^= thread.chance << 17;
    return thread.period / 2 + thread.chance % (thread.period + 1);
}

bool set_timer(const SampledThread& thread) {
    const itimerspec times{{}, {static_cast<time_t>(thread.due / 1000000000), static_cast<long>(thread.due % 1000000000)}};
    return timer_settime(thread.timer, TIMER_ABSTIME, &times, nullptr) == 0;
}

// Returns how many samples are due by now, and sets the timer to the next one. The kernel looks at the clocks of threads
// some hundred times a second: a sample may stand for several.
std::uint64_t set_next(SampledThread& thread) {
    const std::uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::uint64_t count = 0;
    for (; thread.due <= now; ++count) thread.due += next_distance(thread);
    set_timer(thread);
    return count;
}

// Runs in the sampled thread, whatever that is doing: takes no lock, allocates nothing, leaves errno alone.
void take_copy(int, siginfo_t* info, void* context) {
    if (info->si_code != SI_TIMER) return;
    auto* thread = static_cast<SampledThread*>(info->si_value.sival_ptr);
    if (!thread->has_timer.load(std::memory_order_acquire) || !is_recording()) return;
    const int saved = errno;
    const std::uint64_t count = set_next(*thread);
    StackCopy* copy = count > 0 ? g_copies.claim() : nullptr;
    if (copy != nullptr) {
        copy_registers(context, copy->registers);
        copy->tid = static_cast<std::uint32_t>(thread->tid);
        copy->time = now_ns();
        copy->stands_for = count * thread->period;
        copy->start = copy->registers.value[cfi::kStackPointer] - StackCopy::kBelow;
        copy->size = copy_live(copy->start, copy->bytes, sizeof copy->bytes);
        copy->state.store(StackCopy::kFull, std::memory_order_release);
    } else if (count > 0) {
        g_no_room.fetch_add(1, std::memory_order_relaxed);
    }
    errno = saved;
}

bool is_ours(int number) {
    struct sigaction current {};
    return sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
           current.sa_sigaction == take_copy;
}

// Takes a real-time signal that nobody uses; returns 0 where there is none.
int take_signal() {
    for (int number = SIGRTMAX - 4; number > SIGRTMIN + 4; --number) {
        struct sigaction current {};
        if (sigaction(number, nullptr, &current) != 0) continue;
        if (is_ours(number)) return number;
        if ((current.sa_flags & SA_SIGINFO) != 0 || current.sa_handler != SIG_DFL) continue;
        struct sigaction ours {};
        ours.sa_sigaction = take_copy;
        sigfillset(&ours.sa_mask);
        ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        if (sigaction(number, &ours, nullptr) == 0) return number;
    }
    return 0;
}

std::string name_of_thread(const char* tid) {
    const std::string path = std::string("/proc/self/task/") + tid + "/comm";
    char name[32] = "";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    const ssize_t got = ::read(file, name, sizeof name - 1);
    close(file);
    return std::string(name, got > 0 ? static_cast<std::size_t>(got) - 1 : 0);  // without the newline
}

// Which threads are sampled: ROCPD_STACK_THREADS.
class Chosen {
public:
    Chosen() : words_(config().stack_threads) {
        if (words_ != "all" && words_ != "main")
            is_pattern_ = regcomp(&pattern_, words_.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
        if (words_ != "all" && words_ != "main" && !is_pattern_)
            say("ROCPD_STACK_THREADS=" + words_ + " is no regular expression; all threads are sampled");
    }
    bool has(int tid, const std::string& name) const {
        if (name.rfind("rocpd-", 0) == 0) return false;
        if (words_ == "main") return tid == getpid();
        return !is_pattern_ || regexec(&pattern_, name.c_str(), 0, nullptr, 0) == 0;
    }

private:
    const std::string words_;
    bool is_pattern_ = false;
    regex_t pattern_{};
};

// The timers of all threads.
class Timers {
public:
    explicit Timers(double hz) : period_(static_cast<std::uint64_t>(1e9 / hz)) {}

    // Gives new threads a timer, and takes those of ended ones away.
    void look();
    void stop();

private:
    struct Known {
        std::unique_ptr<SampledThread> thread;  // null: not sampled
        unsigned seen;                          // in which look
    };

    std::unique_ptr<SampledThread> arm(int tid);
    void disarm(std::unique_ptr<SampledThread> thread);

    const std::uint64_t period_;  // [ns]
    Chosen chosen_;
    std::unordered_map<int, Known> threads_;  // by tid
    std::deque<std::pair<unsigned, std::unique_ptr<SampledThread>>> ended_;  // in which look
    unsigned looks_ = 0;
};

std::unique_ptr<SampledThread> Timers::arm(int tid) {
    auto thread = std::make_unique<SampledThread>();
    thread->tid = tid;
    thread->period = period_;
    thread->chance = now_ns() * 2654435761u + static_cast<unsigned>(tid);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = g_signal.load();
    event.sigev_value.sival_ptr = thread.get();
    event._sigev_un._tid = tid;
    // The clock of a thread's CPU time, as the kernel numbers it.
    const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u);
    if (timer_create(clock, &event, &thread->timer) != 0) return nullptr;
    thread->due = clock_ns(clock) + next_distance(*thread) / 2;
    thread->has_timer.store(true, std::memory_order_release);
    if (set_timer(*thread)) return thread;
    disarm(std::move(thread));
    return nullptr;
}

void Timers::disarm(std::unique_ptr<SampledThread> thread) {
    thread->has_timer.store(false);
    timer_delete(thread->timer);
    ended_.emplace_back(looks_, std::move(thread));
}

void Timers::look() {
    DIR* folder = opendir("/proc/self/task");
    if (folder == nullptr) return;
    ++looks_;
    while (const dirent* entry = readdir(folder)) {
        const int tid = std::atoi(entry->d_name);
        if (tid <= 0) continue;
        Known& known = threads_[tid];
        known.seen = looks_;
        if (known.thread == nullptr && chosen_.has(tid, name_of_thread(entry->d_name))) known.thread = arm(tid);
    }
    closedir(folder);
    for (auto each = threads_.begin(); each != threads_.end();) {
        if (each->second.seen == looks_) {
            ++each;
            continue;
        }
        if (each->second.thread != nullptr) disarm(std::move(each->second.thread));
        each = threads_.erase(each);
    }
    while (!ended_.empty() && looks_ - ended_.front().first > kLooksToEnd) ended_.pop_front();
}

void Timers::stop() {
    for (auto& [tid, known] : threads_)
        if (known.thread != nullptr) disarm(std::move(known.thread));
    threads_.clear();
}

class NativeSampler {
public:
    NativeSampler() : timers_(config().stacks_hz) {}

    // False: sampling is over.
    bool turn();

private:
    void record(const StackCopy& copy);

    Timers timers_;
    Unwinder unwinder_;
    unsigned turns_ = 0;
};

bool NativeSampler::turn() {
    if (!is_recording()) {
        timers_.stop();
        turns_ = 0;
        return true;
    }
    if (turns_ % kTurnsPerLook == 0) {
        if (!is_ours(g_signal.load())) {
            timers_.stop();
            say("the program uses signal " + std::to_string(g_signal.load()) + ": no further call stacks");
            return false;
        }
        timers_.look();
    }
    if (turns_++ % kTurnsPerModules == 0) unwinder_.look_around();
    g_copies.drain([this](const StackCopy& copy) { record(copy); });
    return true;
}

void NativeSampler::record(const StackCopy& copy) {
    const StackText& text = unwinder_.unwind(copy);
    const SampledStack head{copy.tid, copy.stands_for, text.frames.size()};
    Turn turn;
    if (!turn) return;
    turn.put(kNativeStack, copy.time, sizeof head + text.frames.size() + text.places.size(), [&](char* at) {
        std::memcpy(at, &head, sizeof head);
        std::memcpy(at + sizeof head, text.frames.data(), text.frames.size());
        append(at + sizeof head + text.frames.size(), text.places.data(), text.places.size());
    });
}

void sample_native_stacks() {
    auto* sampler = new NativeSampler;  // never deleted: the process may end anywhere
    for (Pace pace(kTurns); pace.wait();)
        if (!sampler->turn()) return;
}

SamplingThread g_native_thread("rocpd-native", sample_native_stacks);

}  // namespace

void start_native_sampling() {
    if (config().stacks_hz <= 0) return;
    if (!kIsPossible) return say("call stacks of C and C++ are sampled on x86-64 only");
    if (!g_copies.create()) return say("no memory for copies of call stacks");
    if (g_signal.load() == 0) g_signal.store(take_signal());
    if (g_signal.load() == 0) return say("the program uses all real-time signals: no call stacks of C and C++");
    DebugLines::is_possible();  // loads the library here: where the thread does it, a fork could find the loader at work
    g_native_thread.start();
}

void forget_native_sampling() {
    g_native_thread.forget();
    g_copies.forget();
}

}  // namespace rocpd
