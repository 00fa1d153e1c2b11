// Calls of functions that have no tables, from known callers, on a stack that holds what is left of other calls.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "stacks_work.h"

using Spins = void (*)(long turns, void (*inside)(int));

extern "C" {
void spins_leaf(long turns, void (*inside)(int));
void spins_aligned(long turns, void (*inside)(int));
void spins_pushed(long turns, void (*inside)(int));
void spins_called(long turns, void (*inside)(int));
void spins_hidden(long turns, void (*inside)(int));
}

namespace {

// Code of a function that saves registers, spins and returns, as a program makes it at run time.
Spins make_code() {
    static const unsigned char code[] = {
        0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 0x18,  // push %rbx; push %r12; sub $24, %rsp
        0x48, 0x83, 0xc0, 0x03, 0x48, 0xff, 0xcf, 0x75, 0xf7,  // add $3, %rax; dec %rdi; jnz
        0x48, 0x83, 0xc4, 0x18, 0x41, 0x5c, 0x5b, 0xc3,  // add $24, %rsp; pop %r12; pop %rbx; ret
    };
    void* place = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(place, code, sizeof code);
    return reinterpret_cast<Spins>(place);
}

__attribute__((noinline)) void inside(int turns) {
    spin(turns > 100 ? 100 : turns);
    keep_frame();
}

// Leaves return addresses of its own and of `wrong_comparison` where the next function has its frame.
__attribute__((noinline)) int wrong_comparison(const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
__attribute__((noinline)) void wrong_caller(long, void (*)(int)) {
    int numbers[60];
    for (int i = 0; i < 60; ++i) numbers[i] = (i * 7919) % 61;
    std::qsort(numbers, 60, sizeof numbers[0], wrong_comparison);
    keep_frame();
}

__attribute__((noinline)) void calls(Spins function, long turns) {
    wrong_caller(0, nullptr);
    function(turns, inside);
    keep_frame();
}

__attribute__((noinline)) void calls_directly(long turns) {
    wrong_caller(0, nullptr);
    spins_aligned(turns, inside);
    keep_frame();
}

// One place calls them all: what the call before left lies just where the frame of the next one is.
__attribute__((noinline)) void calls_in_turn(long turns) {
    for (volatile Spins each : {&wrong_caller, &spins_aligned}) each(turns, inside);
    keep_frame();
}

}  // namespace

int main(int, char** arguments) {
    const Spins made = make_code();
    for (int round = std::atoi(arguments[1]); round > 0; --round) {
        for (const Spins each : {&spins_leaf, &spins_aligned, &spins_pushed, &spins_called, &spins_hidden, made})
            calls(each, each == made ? 1'000'000 : 200'000);
        calls_directly(200'000);
        calls_in_turn(200'000);
    }
}
