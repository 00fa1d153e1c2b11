#include "python_sampler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "config.h"
#include "json.h"
#include "pace.h"
#include "python.h"
#include "python_lock.h"
#include "recording.h"
#include "say.h"
#include "state.h"

namespace rocpd {
namespace {

using python::Object;
using python::Reference;

constexpr std::size_t kDeepest = 512;       // frames; of deeper stacks the innermost
constexpr std::size_t kMostPlaces = 1 << 15;  // that are remembered

// Whether Python has put itself in order after a fork: before, no other thread may call it. A child that was forked
// without Python's knowledge stays unsampled.
std::atomic<bool> g_python_ready{true};
// The thread that `threading` need not know of: that of the load, unless another one loads the recorder, or of a fork.
pthread_t g_main_thread = syscall(SYS_gettid) == getpid() ? pthread_self() : pthread_t{};

// An instruction of a code object, or where Python does not say which, a line.
struct Place {
    Object* code;
    int at;

    bool operator==(const Place& other) const { return code == other.code && at == other.at; }
};

struct PlaceHash {
    std::size_t operator()(const Place& place) const {
        return std::hash<Object*>()(place.code) * 31 + static_cast<std::size_t>(place.at);
    }
};

// A sampled thread; its frames lie in one vector with those of the others.
struct Sampled {
    std::uint32_t tid;
    std::size_t first, last;
};

// What is said of a code object; holds a reference to it, so that its address stays its own.
struct Code {
    std::string file;
    std::string function;
};

// A function as Python sees it: PyMethodDef.
struct Definition {
    const char* name;
    Object* (*function)(Object*, Object*);
    int flags;
    const char* documentation;
};
constexpr int kNoArguments = 4;  // METH_NOARGS

Object* after_fork_in_child(Object*, Object*) {
    g_python_ready.store(true, std::memory_order_release);
    return python::interface()->none("");
}

constexpr Definition kAfterFork{"rocpd_after_fork", after_fork_in_child, kNoArguments, nullptr};

class Sampler {
public:
    explicit Sampler(const python::Interface& python) : python_(python) {}

    // False: this Python cannot be sampled.
    bool attach();
    void sample();

private:
    void report_forks();
    void find_prefixes();
    void collect();
    void collect_thread(Object* ident, Object* frame);
    std::uint32_t tid_of(Object* ident);
    const std::string& text_of(Object* frame);
    const Code& describe(Object* code);
    std::string without_prefix(const std::string& file) const;
    void record(const Sampled& thread, std::uint64_t time);

    const python::Interface& python_;
    python::ThreadState* state_ = nullptr;
    std::vector<std::string> prefixes_;  // of sys.path, the longest first
    std::unordered_map<Object*, Code> codes_;
    std::uint64_t time_ = 0;
    std::vector<Sampled> threads_;
    std::unordered_map<Place, std::string, PlaceHash> places_;  // what a frame is in the JSON of a stack
    std::vector<const std::string*> frames_;
    std::string json_;
};

bool Sampler::attach() {
    python_.ensure();
    bool can_sample = true;
    if (Object* has_lock = python_.system("_is_gil_enabled")) {  // Python 3.13 and newer
        const Reference enabled(python_.call(has_lock, nullptr));
        can_sample = !enabled || python_.is_true(enabled.get()) != 0;
    }
    if (can_sample) {
        report_forks();
    } else {
        say("call stacks of a Python without global interpreter lock are not sampled");
    }
    python_.clear_error();
    state_ = python_.save();
    return can_sample;
}

// os.register_at_fork(after_in_child=after_fork_in_child)
void Sampler::report_forks() {
    const Reference os(python_.import("os"));
    const Reference function(python_.function(&kAfterFork, nullptr, nullptr));
    const Reference enroll(os ? python_.attribute(os.get(), "register_at_fork") : nullptr);
    const Reference none(python_.tuple(0)), names(python_.dictionary());
    if (!enroll || !function || !none || !names) return;
    python_.set_item(names.get(), "after_in_child", function.get());
    const Reference done(python_.call_with_names(enroll.get(), none.get(), names.get()));
}

void Sampler::find_prefixes() {
    prefixes_.clear();
    Object* path = python_.system("path");
    for (std::ptrdiff_t i = 0; path != nullptr && i < python_.list_size(path); ++i)
        if (const std::string folder = python::text_of(python_.list_item(path, i)); folder.size() > 1)
            prefixes_.push_back(folder + "/");
    std::sort(prefixes_.begin(), prefixes_.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Sampler::without_prefix(const std::string& file) const {
    for (const std::string& prefix : prefixes_)
        if (file.size() > prefix.size() && file.compare(0, prefix.size(), prefix) == 0)
            return file.substr(prefix.size());
    return file;
}

const Code& Sampler::describe(Object* code) {
    const auto known = codes_.find(code);
    if (known != codes_.end()) {
        python_.release(code);
        return known->second;
    }
    find_prefixes();  // a program changes its path, so each time; but new functions are rare
    const Reference file(python_.attribute(code, "co_filename"));
    Reference function(python_.attribute(code, "co_qualname"));
    if (!function) {  // before Python 3.11
        python_.clear_error();
        function.reset(python_.attribute(code, "co_name"));
    }
    return codes_.emplace(code, Code{without_prefix(python::text_of(file.get())), python::text_of(function.get())})
        .first->second;
}

// What a frame is in the JSON of a stack: file(line): function. The line takes long to find, and frames come again.
const std::string& Sampler::text_of(Object* frame) {
    Object* code = python_.code(frame);
    const int at = python_.instruction != nullptr ? python_.instruction(frame) : python_.line(frame);
    std::string& text = places_[{code, at}];
    if (!text.empty()) {
        python_.release(code);
        return text;
    }
    const Code& about = describe(code);
    append_json(text, about.file + "(" + std::to_string(python_.line(frame)) + "): " + about.function);
    return text;
}

// The operating system's number of a thread, 0 where it is not known: threads that `threading` did not start.
std::uint32_t Sampler::tid_of(Object* ident) {
    if (python_.as_unsigned(ident) == static_cast<unsigned long>(g_main_thread))
        return static_cast<std::uint32_t>(getpid());
    Object* threading = python_.item_by_name(python_.modules(), "threading");
    const Reference active(threading != nullptr ? python_.attribute(threading, "_active") : nullptr);
    Object* thread = active ? python_.item(active.get(), ident) : nullptr;
    // Not native_id: that runs Python code, and with it handlers of signals, whose errors would be lost.
    const Reference number(thread != nullptr ? python_.attribute(thread, "_native_id") : nullptr);
    const unsigned long tid = number ? python_.as_unsigned(number.get()) : 0;
    python_.clear_error();
    return tid < UINT32_MAX ? static_cast<std::uint32_t>(tid) : 0;
}

void Sampler::collect_thread(Object* ident, Object* innermost) {
    const std::uint32_t tid = tid_of(ident);
    if (tid == 0) return;
    const std::size_t first = frames_.size();
    frames_.push_back(&text_of(innermost));
    Reference frame(python_.back(innermost));
    while (frame && frames_.size() - first < kDeepest) {
        frames_.push_back(&text_of(frame.get()));
        frame.reset(python_.back(frame.get()));
    }
    threads_.push_back({tid, first, frames_.size()});
}

// With the interpreter's lock, in whatever thread, between two of its instructions: runs no Python code, and collects
// no garbage, as finalizers of the program are such code.
void Sampler::collect() {
    time_ = now_ns();
    if (places_.size() > kMostPlaces) {
        for (const auto& known : codes_) python_.release(known.first);
        codes_.clear();
        places_.clear();
    }
    const bool collects = python_.gc_disable != nullptr && python_.gc_disable() != 0;
    Object* current_frames = python_.system("_current_frames");
    const Reference all(current_frames != nullptr ? python_.call(current_frames, nullptr) : nullptr);
    Object *ident = nullptr, *frame = nullptr;
    for (std::ptrdiff_t at = 0; all && python_.next(all.get(), &at, &ident, &frame) != 0;) collect_thread(ident, frame);
    python_.clear_error();
    if (collects) python_.gc_enable();
}

void Sampler::record(const Sampled& thread, std::uint64_t time) {
    json_ = "[";
    for (std::size_t i = thread.first; i < thread.last && json_.size() < kLongestText / 2; ++i) {
        if (json_.size() > 1) json_ += ", ";
        json_ += *frames_[i];
    }
    json_ += ']';
    Turn turn;
    if (!turn || json_.size() > kLongestText) return;
    turn.put(kStack, time, sizeof(std::uint64_t) + json_.size(), [&](char* at) {
        const std::uint64_t tid = thread.tid;
        std::memcpy(at, &tid, sizeof tid);
        append(at + sizeof tid, json_.data(), json_.size());
    });
}

void Sampler::sample() {
    threads_.clear();
    frames_.clear();
    python::run_interrupting(state_, [](void* self) { static_cast<Sampler*>(self)->collect(); }, this);
    for (const Sampled& thread : threads_) record(thread, time_);
}

void sample_stacks() {
    const python::Interface& python = *python::interface();
    Sampler* sampler = nullptr;  // never deleted: Python may end the thread anywhere
    for (Pace pace(config().python_hz); pace.wait();) {
        if (!is_recording() || !g_python_ready.load(std::memory_order_acquire)) continue;
        const bool runs =
            python.is_initialized() != 0 && (python.is_finalizing == nullptr || python.is_finalizing() == 0);
        if (!runs && sampler != nullptr) return;
        if (!runs) continue;
        if (sampler == nullptr) {
            sampler = new Sampler(python);
            if (!sampler->attach()) return;
        }
        sampler->sample();
    }
}

SamplingThread g_thread("rocpd-stacks", sample_stacks);

}  // namespace

void start_python_sampling() {
    if (config().python_hz > 0 && python::interface() != nullptr) g_thread.start();
}

void forget_python_sampling() {
    g_thread.forget();
    g_main_thread = pthread_self();
    if (config().python_hz <= 0 || python::interface() == nullptr) return;
    python::forget_interrupting();
    if (python::interface()->is_initialized() != 0) g_python_ready.store(false, std::memory_order_release);
}

}  // namespace rocpd
