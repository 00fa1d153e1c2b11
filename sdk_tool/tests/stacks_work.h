// Work that takes as much CPU time as it has turns.
#pragma once

// A call that is the last thing of a function leaves the function's frame otherwise.
inline void keep_frame() { asm volatile(""); }

inline void spin(int turns) {
    static volatile unsigned long result;
    unsigned long value = result;
    for (; turns > 0; --turns)
        for (int i = 0; i < 1000; ++i) value = value * 6364136223846793005ul + 1442695040888963407ul;
    result = value;
}
