// NVTX: what programs and libraries annotated with it report becomes roctx ranges and marks.
//
// NVTX loads the library that NVTX_INJECTION64_PATH names at its first use and calls InitializeInjectionNvtx2. Domains
// have stacks of ranges of their own; here all are on the thread's stack, and a range that is popped while ranges of
// other domains lie over it ends with these.
#include "nvtx.h"

#include <dlfcn.h>

#include <cstring>
#include <cwchar>
#include <string>
#include <vector>

#include "roctx.h"

namespace {

using namespace rocpd::nvtx;

// The roctx of this process: AMD's where it is loaded, so that ranges enclose GPU work, else ours.
struct Roctx {
    int (*push)(const char*) = roctxRangePushA;
    int (*pop)() = roctxRangePop;
    std::uint64_t (*start)(const char*) = roctxRangeStartA;
    void (*stop)(std::uint64_t) = roctxRangeStop;
    void (*mark)(const char*) = roctxMarkA;
    int (*name_thread)(const char*) = roctxNameOsThread;
};

template <typename Function>
void prefer(Function& function, const char* name) {
    if (void* found = dlsym(RTLD_DEFAULT, name)) function = reinterpret_cast<Function>(found);
}

const Roctx& roctx() {
    static const Roctx only = [] {
        Roctx found;
        prefer(found.push, "roctxRangePushA");
        prefer(found.pop, "roctxRangePop");
        prefer(found.start, "roctxRangeStartA");
        prefer(found.stop, "roctxRangeStop");
        prefer(found.mark, "roctxMarkA");
        prefer(found.name_thread, "roctxNameOsThread");
        return found;
    }();
    return only;
}

// A domain; nullptr stands for the default one. Never deleted: threads may still use what they destroy.
struct Domain {
    std::string prefix;  // of the texts of its ranges
};

std::string narrow(const wchar_t* text) {
    std::string result;
    for (; text != nullptr && *text != L'\0'; ++text) {
        const auto c = static_cast<std::uint32_t>(*text);
        if (c < 0x80) {
            result += static_cast<char>(c);
        } else if (c < 0x800) {
            result += static_cast<char>(0xC0 | c >> 6);
            result += static_cast<char>(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            result += static_cast<char>(0xE0 | c >> 12);
            result += static_cast<char>(0x80 | (c >> 6 & 0x3F));
            result += static_cast<char>(0x80 | (c & 0x3F));
        } else {
            result += static_cast<char>(0xF0 | (c >> 18 & 7));
            result += static_cast<char>(0x80 | (c >> 12 & 0x3F));
            result += static_cast<char>(0x80 | (c >> 6 & 0x3F));
            result += static_cast<char>(0x80 | (c & 0x3F));
        }
    }
    return result;
}

// Calls `use` with the text of an event, in its domain.
template <typename Use>
auto with_text(const Domain* domain, const Attributes* attributes, Use use) {
    const void* message = attributes != nullptr ? attributes->message : nullptr;
    const int type = message != nullptr ? attributes->message_type : 0;
    if (domain == nullptr && type == kAscii) return use(static_cast<const char*>(message));
    std::string text = domain != nullptr ? domain->prefix : std::string();
    if (type == kAscii) text += static_cast<const char*>(message);
    if (type == kUnicode) text += narrow(static_cast<const wchar_t*>(message));
    if (type == kRegistered) text += *static_cast<const std::string*>(message);
    return use(text.c_str());
}

// The open pushes of this thread.
struct Level {
    const Domain* domain;
    bool ended;  // popped while others lay over it
};
thread_local std::vector<Level> t_levels;

int push_in(const Domain* domain, const char* text) {
    t_levels.push_back({domain, false});
    return roctx().push(text);
}

int pop_in(const Domain* domain) {
    std::size_t level = t_levels.size();
    while (level > 0 && (t_levels[level - 1].domain != domain || t_levels[level - 1].ended)) --level;
    if (level == 0) return -1;
    t_levels[level - 1].ended = true;
    int depth = 0;
    for (; !t_levels.empty() && t_levels.back().ended; t_levels.pop_back()) depth = roctx().pop();
    return depth;
}

void mark_ex(const Attributes* a) { with_text(nullptr, a, [](const char* text) { roctx().mark(text); }); }
void mark_a(const char* text) { roctx().mark(text != nullptr ? text : ""); }
void mark_w(const wchar_t* text) { roctx().mark(narrow(text).c_str()); }
std::uint64_t start_ex(const Attributes* a) {
    return with_text(nullptr, a, [](const char* text) { return roctx().start(text); });
}
std::uint64_t start_a(const char* text) { return roctx().start(text != nullptr ? text : ""); }
std::uint64_t start_w(const wchar_t* text) { return roctx().start(narrow(text).c_str()); }
void end(std::uint64_t id) { roctx().stop(id); }
int push_ex(const Attributes* a) {
    return with_text(nullptr, a, [](const char* text) { return push_in(nullptr, text); });
}
int push_a(const char* text) { return push_in(nullptr, text != nullptr ? text : ""); }
int push_w(const wchar_t* text) { return push_in(nullptr, narrow(text).c_str()); }
int pop() { return pop_in(nullptr); }
void name_thread_a(std::uint32_t, const char* name) { roctx().name_thread(name); }
void name_thread_w(std::uint32_t, const wchar_t* name) { roctx().name_thread(narrow(name).c_str()); }

void domain_mark(const Domain* domain, const Attributes* a) {
    with_text(domain, a, [](const char* text) { roctx().mark(text); });
}
std::uint64_t domain_start(const Domain* domain, const Attributes* a) {
    return with_text(domain, a, [](const char* text) { return roctx().start(text); });
}
void domain_end(const Domain*, std::uint64_t id) { roctx().stop(id); }
int domain_push(const Domain* domain, const Attributes* a) {
    return with_text(domain, a, [domain](const char* text) { return push_in(domain, text); });
}
int domain_pop(const Domain* domain) { return pop_in(domain); }
const std::string* register_a(const Domain*, const char* text) { return new std::string(text != nullptr ? text : ""); }
const std::string* register_w(const Domain*, const wchar_t* text) { return new std::string(narrow(text)); }
const Domain* create_a(const char* name) { return new Domain{name != nullptr ? std::string(name) + ": " : ""}; }
const Domain* create_w(const wchar_t* name) { return new Domain{narrow(name) + ": "}; }
void destroy(const Domain*) {}

struct Slot {
    unsigned id;
    Function function;
};

template <typename F>
Slot slot(unsigned id, F function) {
    return {id, reinterpret_cast<Function>(function)};
}

void fill(const Exports& exports, int module, const std::vector<Slot>& slots) {
    Table table = nullptr;
    unsigned size = 0;
    if (exports.module_table(module, &table, &size) == 0 || table == nullptr) return;
    for (const Slot& each : slots)
        if (each.id < size && table[each.id] != nullptr) *table[each.id] = each.function;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(ExportTable export_table) {
    const auto* exports = static_cast<const Exports*>(export_table(kCallbacks));
    if (exports == nullptr || exports->size < sizeof(Exports) || exports->module_table == nullptr) return 0;
    fill(*exports, kCore,
         {slot(kMarkEx, mark_ex), slot(kMarkA, mark_a), slot(kMarkW, mark_w), slot(kRangeStartEx, start_ex),
          slot(kRangeStartA, start_a), slot(kRangeStartW, start_w), slot(kRangeEnd, end), slot(kRangePushEx, push_ex),
          slot(kRangePushA, push_a), slot(kRangePushW, push_w), slot(kRangePop, pop),
          slot(kNameOsThreadA, name_thread_a), slot(kNameOsThreadW, name_thread_w)});
    fill(*exports, kCore2,
         {slot(kDomainMarkEx, domain_mark), slot(kDomainRangeStartEx, domain_start), slot(kDomainRangeEnd, domain_end),
          slot(kDomainRangePushEx, domain_push), slot(kDomainRangePop, domain_pop),
          slot(kDomainRegisterStringA, register_a), slot(kDomainRegisterStringW, register_w),
          slot(kDomainCreateA, create_a), slot(kDomainCreateW, create_w), slot(kDomainDestroy, destroy)});
    return 1;
}
