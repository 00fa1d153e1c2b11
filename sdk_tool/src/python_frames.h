// The Python frames of a thread, read from the interpreter's memory without its lock: for samples of C and C++, whose
// stacks show the interpreter's loop where Python runs.
//
// Everything is read by copy_live, so what has moved or gone is no crash, only a frame without a name. The layout is
// that of CPython 3.11 to 3.13; of other versions nothing is read.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace rocpd {

struct PythonFrame {
    std::uint64_t code;         // address of the code object
    std::uint64_t instruction;  // address of the instruction that it is at
    bool is_outermost;          // of those that one call of the interpreter's loop runs
};

// The Python frames of one moment, the innermost first.
struct PythonFrames {
    static constexpr std::uint32_t kMost = 200;

    std::uint32_t count;
    bool is_whole;  // to the thread's first
    PythonFrame frames[kMost];
};

namespace python {

// Looks for a Python in this process whose frames can be read. To be called now and then: it may be loaded late.
void find_frames();
// Returns the calling thread's state, 0 where it runs no Python. Usable in signal handlers.
std::uint64_t state_of_this_thread();
// Copies the frames of a thread's state. Usable in signal handlers.
void copy_frames(std::uint64_t state, PythonFrames& frames);
// Returns what a frame is in the JSON of a stack: file(line): function.
const std::string& text_of_frame(const PythonFrame& frame);

}  // namespace python
}  // namespace rocpd
