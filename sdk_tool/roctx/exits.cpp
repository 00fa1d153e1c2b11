// Owns the ways out of a process that run no exit handlers: _exit and exec. Effective only when preloaded.
//
// Python's multiprocessing ends its forked children with _exit: without this they would lose their last second.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <vector>

#include "rocpd/recorder.h"

#define ROCPD_EXPORT __attribute__((visibility("default")))

extern char** environ;

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

// The C library's own. Looked up at load, not when needed: that may be in a signal handler.
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

// Arguments of the execl family up to their null, which is in the result.
std::vector<char*> collect(const char* first, va_list rest) {
    std::vector<char*> all{const_cast<char*>(first)};
    while (all.back() != nullptr) all.push_back(va_arg(rest, char*));
    return all;
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

ROCPD_EXPORT int execl(const char* path, const char* first, ...) {
    va_list rest;
    va_start(rest, first);
    const std::vector<char*> argv = collect(first, rest);
    va_end(rest);
    return execve(path, argv.data(), environ);
}

ROCPD_EXPORT int execlp(const char* file, const char* first, ...) {
    va_list rest;
    va_start(rest, first);
    const std::vector<char*> argv = collect(first, rest);
    va_end(rest);
    return execvpe(file, argv.data(), environ);
}

ROCPD_EXPORT int execle(const char* path, const char* first, ...) {
    va_list rest;
    va_start(rest, first);
    const std::vector<char*> argv = collect(first, rest);
    char* const* envp = va_arg(rest, char* const*);
    va_end(rest);
    return execve(path, argv.data(), envp);
}

}  // extern "C"
