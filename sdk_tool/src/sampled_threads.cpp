#include "sampled_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clock.h"
#include "config.h"
#include "live_memory.h"
#include "recording.h"
#include "say.h"
#include "signals.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kSoon = 50'000;  // CPU time of a thread [ns]
constexpr unsigned kLooksToEnd = 100;  // after which no signal of a deleted timer is on its way

StackCopies g_copies;
std::atomic<int> g_signal{0};

#if defined(__x86_64__)

// Registers of a context by DWARF's numbers.
constexpr int kContextRegisters[cfi::kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                    REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

void copy_registers(const void* context, cfi::Registers& registers) {
    const auto& all = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    for (unsigned i = 0; i < cfi::kRegisters; ++i)
        registers.value[i] = static_cast<std::uint64_t>(all[kContextRegisters[i]]);
    registers.known = (1u << cfi::kRegisters) - 1;
}

constexpr bool kIsPossible = true;

#else

void copy_registers(const void*, cfi::Registers&) {}
constexpr bool kIsPossible = false;

#endif

// `due`: time of the timer's clock [ns].
bool set_timer(timer_t timer, std::uint64_t due) {
    const itimerspec times{{}, {static_cast<time_t>(due / 1000000000), static_cast<long>(due % 1000000000)}};
    return timer_settime(timer, TIMER_ABSTIME, &times, nullptr) == 0;
}

// Returns for how much time the sample stands, and sets the timer to the next one. The kernel looks at the clocks of
// threads some hundred times a second: a sample may stand for several.
std::uint64_t set_next(SampledThread& thread) {
    const std::uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    std::uint64_t stands_for = 0;
    for (; thread.due <= now; stands_for += thread.period) thread.due += random_distance(thread.period, thread.chance);
    set_timer(thread.timer, thread.due);
    return stands_for;
}

// Copies the stack that the registers of `copy` say, and hands it over.
void complete(StackCopy& copy, const SampledThread& thread, std::uint64_t stands_for) {
    python::copy_frames(thread.python.load(std::memory_order_relaxed), copy.python);
    copy.tid = static_cast<std::uint32_t>(thread.tid);
    copy.time = now_ns();
    copy.stands_for = stands_for;
    copy.start = copy.registers.value[cfi::kStackPointer] - StackCopy::kBelow;
    copy.size = copy_live(copy.start, copy.bytes, sizeof copy.bytes);
    copy.is_forbidden = copy.size == 0 && errno != EFAULT;  // EFAULT: the stack pointer points nowhere
}

// Runs in the sampled thread, whatever that is doing: takes no lock, allocates nothing, leaves errno alone.
void take_copy(int, siginfo_t* info, void* context) {
    if (info->si_code != SI_TIMER) return;
    auto* thread = static_cast<SampledThread*>(info->si_value.sival_ptr);
    if (!thread->is_sampled.load(std::memory_order_acquire) || !is_recording()) return;
    const int saved = errno;
    const std::uint64_t stands_for = thread->is_wall ? thread->asked.exchange(0) : set_next(*thread);
    if (StackCopy* copy = stands_for > 0 ? g_copies.claim() : nullptr) {
        copy_registers(context, copy->registers);
        thread->python.store(python::state_of_this_thread(), std::memory_order_relaxed);
        complete(*copy, *thread, stands_for);
        copy->state.store(StackCopy::kFull, std::memory_order_release);
    }
    errno = saved;
}

bool is_ours(int number) {
    struct sigaction current {};
    return sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
           current.sa_sigaction == take_copy;
}

// Returns 0 where there is none.
int take_signal() {
    for (int number = SIGRTMAX - 4; number > SIGRTMIN + 4; --number) {
        if (!is_unhandled(number)) continue;
        struct sigaction ours {};
        ours.sa_sigaction = take_copy;
        sigfillset(&ours.sa_mask);
        ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        if (sigaction(number, &ours, nullptr) == 0) return number;
    }
    return 0;
}

// Reads a file of a thread in /proc, which fits into `size` bytes; returns how many it has.
std::size_t read_of_thread(int tid, const char* name, char* to, std::size_t size) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t got = ::read(file, to, size - 1);
    close(file);
    to[got > 0 ? got : 0] = '\0';
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

// Where a thread waits in the kernel: all that identifies the call, and the registers that are known of it.
struct Wait {
    char text[256] = "";
    std::uint64_t stack = 0, instruction = 0;
};

// Returns false when the thread runs, or is gone.
bool find_wait(int tid, Wait& wait) {
    if (read_of_thread(tid, "syscall", wait.text, sizeof wait.text) == 0) return false;
    const char* instruction = std::strrchr(wait.text, ' ');
    if (instruction == nullptr) return false;  // running
    const char* stack = instruction;
    while (stack > wait.text && stack[-1] != ' ') --stack;
    wait.stack = std::strtoull(stack, nullptr, 16);
    wait.instruction = std::strtoull(instruction + 1, nullptr, 16);
    return wait.stack != 0 && wait.instruction != 0;
}

// Copies a thread that waits. Nothing is taken of one that went on meanwhile.
void copy_waiting(const SampledThread& thread, const Wait& wait, std::uint64_t stands_for) {
    StackCopy* copy = g_copies.claim();
    if (copy == nullptr) return;
    copy->registers = {};
    copy->registers.set(cfi::kStackPointer, wait.stack);
    copy->registers.set(cfi::kReturn, wait.instruction);
    complete(*copy, thread, stands_for);
    Wait after;
    const bool is_same = find_wait(thread.tid, after) && std::strcmp(wait.text, after.text) == 0;
    copy->state.store(is_same ? StackCopy::kFull : StackCopy::kFree, std::memory_order_release);
}

// Its sample comes when it has run for a little longer. What it runs too short for counts for its next one.
void ask_running(SampledThread& thread, std::uint64_t stands_for) {
    if (thread.asked.fetch_add(stands_for) == 0 || thread.due < clock_ns(thread.clock)) {
        thread.due = clock_ns(thread.clock) + kSoon;
        set_timer(thread.timer, thread.due);
    }
}

// A container may forbid what samples need. Returns in words what, "" where all is permitted.
std::string forbidden() {
    const std::uint64_t here = 37;
    std::uint64_t copy = 0;
    if (!read_live(reinterpret_cast<std::uint64_t>(&here), copy)) return "process_vm_readv";
    sigevent event{};
    event.sigev_notify = SIGEV_NONE;
    timer_t timer{};
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return "timer_create";
    timer_delete(timer);
    return "";
}

}  // namespace

std::uint64_t random_distance(std::uint64_t period, std::uint64_t& chance) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return period / 2 + chance % (period + 1);
}

// Which threads are sampled: ROCPD_STACK_THREADS.
class SampledThreads::Chosen {
public:
    Chosen() : words_(config().stack_threads) {
        if (words_ == "all" || words_ == "main") return;
        is_pattern_ = regcomp(&pattern_, words_.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
        if (!is_pattern_) say("ROCPD_STACK_THREADS=" + words_ + " is no regular expression; all threads are sampled");
    }
    bool has(int tid) const {
        if (words_ == "main") return tid == getpid();
        char name[32];
        const std::size_t size = read_of_thread(tid, "comm", name, sizeof name);
        if (size > 0) name[size - 1] = '\0';  // the end of the line
        if (size == 0 || std::strncmp(name, "rocpd-", 6) == 0) return false;
        return !is_pattern_ || regexec(&pattern_, name, 0, nullptr, 0) == 0;
    }

private:
    const std::string words_;
    bool is_pattern_ = false;
    regex_t pattern_{};
};

std::string SampledThreads::prepare() {
    if (!kIsPossible) return "call stacks of C and C++ are sampled on x86-64 only";
    if (const std::string call = forbidden(); !call.empty())
        return call + " is not permitted here (seccomp): no call stacks of C and C++";
    if (!g_copies.create()) return "no memory for copies of call stacks";
    if (g_signal.load() == 0) g_signal.store(take_signal());
    return g_signal.load() != 0 ? "" : "the program uses all real-time signals: no call stacks of C and C++";
}

bool SampledThreads::has_signal() { return is_ours(g_signal.load()); }

int SampledThreads::signal_number() { return g_signal.load(); }

StackCopies& SampledThreads::copies() { return g_copies; }

SampledThreads::SampledThreads(double hz, bool is_wall)
    : period_(static_cast<std::uint64_t>(1e9 / hz)), is_wall_(is_wall), chosen_(std::make_unique<Chosen>()) {}

SampledThreads::~SampledThreads() = default;

std::unique_ptr<SampledThread> SampledThreads::begin(int tid) {
    auto thread = std::make_unique<SampledThread>();
    thread->tid = tid;
    thread->clock = static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u);  // as the kernel numbers it
    thread->is_wall = is_wall_;
    thread->period = period_;
    thread->chance = now_ns() * 2654435761u + static_cast<unsigned>(tid);
    if (start_timer(*thread)) return thread;
    end(std::move(thread));
    return nullptr;
}

bool SampledThreads::start_timer(SampledThread& thread) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = g_signal.load();
    event.sigev_value.sival_ptr = &thread;
    event._sigev_un._tid = thread.tid;
    thread.has_timer = timer_create(thread.clock, &event, &thread.timer) == 0;
    if (!thread.has_timer) return false;
    const std::uint64_t due = clock_ns(thread.clock) + random_distance(period_, thread.chance) / 2;
    if (!is_wall_) thread.due = due;
    const timer_t timer = thread.timer;
    thread.is_sampled.store(true, std::memory_order_release);  // from now on the handler may use it
    return is_wall_ || set_timer(timer, due);
}

void SampledThreads::end(std::unique_ptr<SampledThread> thread) {
    thread->is_sampled.store(false);
    if (thread->has_timer) timer_delete(thread->timer);
    ended_.emplace_back(looks_, std::move(thread));
}

void SampledThreads::look() {
    DIR* folder = opendir("/proc/self/task");
    if (folder == nullptr) return;
    ++looks_;
    while (const dirent* entry = readdir(folder)) {
        const int tid = std::atoi(entry->d_name);
        if (tid <= 0) continue;
        Known& known = threads_[tid];
        known.seen = looks_;
        if (known.thread == nullptr && chosen_->has(tid)) known.thread = begin(tid);
    }
    closedir(folder);
    for (auto each = threads_.begin(); each != threads_.end();) {
        if (each->second.seen == looks_) {
            ++each;
            continue;
        }
        if (each->second.thread != nullptr) end(std::move(each->second.thread));
        each = threads_.erase(each);
    }
    while (!ended_.empty() && looks_ - ended_.front().first > kLooksToEnd) ended_.pop_front();
}

void SampledThreads::stop() {
    for (auto& [tid, known] : threads_)
        if (known.thread != nullptr) end(std::move(known.thread));
    threads_.clear();
}

void SampledThreads::sample(std::uint64_t stands_for) {
    for (auto& [tid, known] : threads_) {
        if (known.thread == nullptr) continue;
        Wait wait;
        if (find_wait(tid, wait))
            copy_waiting(*known.thread, wait, stands_for);
        else
            ask_running(*known.thread, stands_for);
    }
}

}  // namespace rocpd
