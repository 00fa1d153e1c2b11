// A part of stacks_program that may be loaded at run time.
#include "stacks_work.h"

// Has no name where the library is stripped.
static __attribute__((noinline)) void half_inside(int turns) {
    spin(turns);
    keep_frame();
}

extern "C" __attribute__((visibility("default"))) void known_half(int turns) {
    half_inside(turns);
    keep_frame();
}
