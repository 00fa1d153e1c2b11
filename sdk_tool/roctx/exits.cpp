// The ways out of a process that run no exit handlers: _exit and exec. Effective only when preloaded.
//
// Python's multiprocessing ends its forked children with _exit: without this they would lose their last second.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdlib>

#include "rocpd/recorder.h"

#define ROCPD_EXPORT __attribute__((visibility("default")))

namespace {

using Exit = void (*)(int);
using Exec = int (*)(const char*, char* const*, char* const*);
using ExecDescriptor = int (*)(int, char* const*, char* const*);

struct Next {
    Exit exit;
    Exec execve, execvpe;
    ExecDescriptor fexecve;
};

template <typename Function>
void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The C library's own functions. Looked up at load: their first use may be in a signal handler.
const Next& next() {
    static const Next only = [] {
        Next found{};
        find(found.exit, "_exit");
        find(found.execve, "execve");
        find(found.execvpe, "execvpe");
        find(found.fexecve, "fexecve");
        return found;
    }();
    return only;
}

__attribute__((constructor)) void look_up() { next(); }

// A va_list can be passed by reference only inside a struct.
struct Rest {
    va_list list;
};

// Counts the arguments of an execl function, with the null that ends them.
std::size_t count(const char* first, Rest& rest) {
    std::size_t number = 1;
    for (const char* word = first; word != nullptr; ++number) word = va_arg(rest.list, const char*);
    return number;
}

void collect(char** argv, const char* first, Rest& rest) {
    *argv = const_cast<char*>(first);
    while (*argv != nullptr) *++argv = va_arg(rest.list, char*);
}

}  // namespace

extern "C" {

ROCPD_EXPORT void _exit(int code) {
    rocpd_finalize();
    next().exit(code);
    __builtin_unreachable();
}

ROCPD_EXPORT void _Exit(int code) {
    rocpd_finalize();
    next().exit(code);
    __builtin_unreachable();
}

// exec may fail and return: the file is brought up to date, not closed.
ROCPD_EXPORT int execve(const char* path, char* const* argv, char* const* envp) {
    rocpd_flush();
    return next().execve(path, argv, envp);
}

ROCPD_EXPORT int execv(const char* path, char* const* argv) { return execve(path, argv, environ); }

ROCPD_EXPORT int execvpe(const char* file, char* const* argv, char* const* envp) {
    rocpd_flush();
    return next().execvpe(file, argv, envp);
}

ROCPD_EXPORT int execvp(const char* file, char* const* argv) { return execvpe(file, argv, environ); }

ROCPD_EXPORT int fexecve(int descriptor, char* const* argv, char* const* envp) {
    rocpd_flush();
    return next().fexecve(descriptor, argv, envp);
}

// On the stack of each function: they are called in children of vfork(), which share the parent's heap and never return
// to free memory.
#define ROCPD_ARGV(COUNT) static_cast<char**>(__builtin_alloca((COUNT) * sizeof(char*)))

ROCPD_EXPORT int execl(const char* path, const char* first, ...) {
    Rest rest;
    va_start(rest.list, first);
    char** argv = ROCPD_ARGV(count(first, rest));
    va_end(rest.list);
    va_start(rest.list, first);
    collect(argv, first, rest);
    va_end(rest.list);
    return execve(path, argv, environ);
}

ROCPD_EXPORT int execlp(const char* file, const char* first, ...) {
    Rest rest;
    va_start(rest.list, first);
    char** argv = ROCPD_ARGV(count(first, rest));
    va_end(rest.list);
    va_start(rest.list, first);
    collect(argv, first, rest);
    va_end(rest.list);
    return execvpe(file, argv, environ);
}

ROCPD_EXPORT int execle(const char* path, const char* first, ...) {
    Rest rest;
    va_start(rest.list, first);
    char** argv = ROCPD_ARGV(count(first, rest));
    va_end(rest.list);
    va_start(rest.list, first);
    collect(argv, first, rest);
    char* const* envp = va_arg(rest.list, char* const*);
    va_end(rest.list);
    return execve(path, argv, envp);
}

}  // extern "C"
