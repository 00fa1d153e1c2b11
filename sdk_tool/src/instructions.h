// Reads instructions of x86-64: how long each is, and its effect as far as that matters for finding a caller: on the
// stack, on registers, and on where the program goes on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocpd::x86 {

// General registers by the numbers of instructions.
constexpr unsigned kGeneral = 16, kRax = 0, kRcx = 1, kRdx = 2, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7, kR11 = 11;
constexpr unsigned kNone = kGeneral;

struct Instruction {
    enum Kind : std::uint8_t {
        kOther,   // all that it does is to change registers
        kPush,    // `from`, which may be kNone
        kPop,     // into `to`, which may be kNone
        kMove,    // `from` into `to`
        kLoad,    // 8 bytes at `from` + number into `to`
        kStore,   // `from` into 8 bytes at `to` + number
        kAddress, // `from` + number into `to`
        kLeave,
        kJump,    // to the address behind it + number
        kBranch,  // there, or on
        kCall,
        kReturn,
        kEnd,     // goes on elsewhere, or nowhere
    };

    Kind kind = kOther;
    std::uint8_t length = 0;
    unsigned to = kNone, from = kNone;
    std::int64_t number = 0;
    std::uint32_t changed = 0;  // a bit for each register that has an unknown value after it
};

constexpr std::size_t kLongestInstruction = 15;

// Reads the instruction that some bytes begin with. Returns false where they are none.
bool read_instruction(const std::uint8_t* bytes, std::size_t size, Instruction& instruction);

}  // namespace rocpd::x86
