// How to get from a frame to that of its caller: DWARF call frame information, as compilers leave it in .eh_frame of
// every program and library for exceptions. Read from memory, so that it needs neither files nor a library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rocpd::cfi {

// Registers of x86-64 by DWARF's numbers; the last one is the return address.
constexpr unsigned kRegisters = 17, kFramePointer = 6, kStackPointer = 7, kReturn = 16;

struct Registers {
    std::uint64_t value[kRegisters] = {};
    std::uint32_t known = 0;  // a bit each

    bool has(unsigned number) const { return number < kRegisters && (known >> number & 1u) != 0; }
    void set(unsigned number, std::uint64_t to) {
        value[number] = to;
        known |= 1u << number;
    }
    void forget(unsigned number) { known &= ~(1u << number); }
};

// Where a register of the caller is.
struct Place {
    enum Kind : std::uint8_t { kSame, kUndefined, kInFrame, kFrame, kRegister, kAtExpression, kExpression };
    Kind kind = kSame;
    std::uint16_t number = 0;  // of the register
    std::int64_t offset = 0;   // from the frame's address, or from the register
    std::string expression;
};

// What holds at one instruction.
struct Rule {
    std::uint64_t function = 0;  // where it starts, 0 where that is not known
    bool is_known = false;
    bool is_inferred = false;    // from the code, not from a table
    bool is_signal_frame = false;
    Place frame;  // kRegister or kExpression
    Place places[kRegisters];
};

// Reads 8 bytes of the stack; returns false where they were not copied.
using ReadStack = std::function<bool(std::uint64_t address, std::uint64_t& value)>;

// Finds the rule of an instruction by the table at `header`, the .eh_frame_hdr of its module. Returns false where that
// has none.
bool find_rule(std::uint64_t header, std::uint64_t instruction, Rule& rule);

// Turns the registers of a frame into those of its caller. Returns false where that cannot be known.
bool step(const Rule& rule, const ReadStack& stack, Registers& registers);

// The same by frame pointers, which is a guess where code was compiled without.
bool step_by_frame_pointer(const ReadStack& stack, Registers& registers);

}  // namespace rocpd::cfi
