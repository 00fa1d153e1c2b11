// Copies of stacks become call stacks: the instructions that the functions on them are at, and names for these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cfi.h"
#include "debug_lines.h"
#include "modules.h"
#include "stack_copies.h"
#include "symbols.h"

namespace rocpd {

// A call stack as a file has it.
struct StackText {
    std::string frames;  // JSON: an array of texts, the innermost first
    std::string places;  // JSON: `places`, of each frame its place in a library where its line is not known, else null;
                         // `build_ids` of these libraries; `inferred`, where a caller was found by the code of a
                         // function, that frame. Empty where there is none of these.
};

class Unwinder {
public:
    // Returns the text of a stack, valid until the next call.
    const StackText& unwind(const StackCopy& copy);

private:
    // What is known of a module by its file; read when a name is asked for.
    struct Names {
        std::unique_ptr<Symbols> symbols;
        std::unique_ptr<DebugLines> lines;
    };
    // What an instruction is in the JSON of a stack; with what was inlined there, several frames.
    struct Text {
        std::string frames, places;
        std::string build_id;    // JSON: name and id of the library, where a place needs it
        bool is_python = false;  // the loop of Python's interpreter
    };

    bool look_around(std::uint64_t pause, std::uint64_t times);
    bool walk(const StackCopy& copy);
    bool follow(const StackCopy& copy);
    bool step(const cfi::ReadStack& stack, std::uint64_t& back, cfi::Registers& registers);
    const cfi::Rule* rule_at(std::uint64_t instruction, std::uint64_t back);
    const Text& text_at(std::uint64_t instruction);
    void describe(std::uint64_t instruction, Text& text);
    Names& names_of(const Module& module);
    void collect(const PythonFrames& python, bool is_whole);
    void add_python(const PythonFrames& python, std::uint32_t& next);
    void put_together(bool is_whole);
    void put_facts(const std::vector<std::string_view>& build_ids);

    Modules modules_;
    std::uint64_t looked_ = 0;   // at them, when [ns of CLOCK_MONOTONIC]
    std::uint64_t took_ = 0;     // the last look, of CPU time [ns]
    bool is_missing_ = false;    // a library: an instruction lies in none
    std::unordered_map<std::uint64_t, cfi::Rule> rules_;  // by instruction
    std::unordered_map<std::uint64_t, Text> texts_;       // by instruction
    std::unordered_map<std::string, Text> python_texts_;  // by frame
    std::unordered_map<std::string, Names> names_;        // by path
    std::vector<std::uint64_t> instructions_;
    std::size_t inferred_ = 0;  // of the instructions, the first whose caller no table tells; else how many there are
    cfi::Rule own_code_;        // of the instruction that was asked for last in code that the program made
    std::vector<const Text*> pieces_;
    StackText stack_;
};

}  // namespace rocpd
