#include "instructions.h"

#include <cstring>

namespace rocpd::x86 {
namespace {

// What follows an opcode. m: an operand; b, z: a number of one, of four bytes; M, Z: both; others are dealt with apart.
constexpr char kOneByte[] =
    "mmmmbzxxmmmmbzxx" "mmmmbzxxmmmmbzxx" "mmmmbzxxmmmmbzxx" "mmmmbzxxmmmmbzxx"
    "xxxxxxxxxxxxxxxx" "................" "xxxmxxxxzZbM...." "bbbbbbbbbbbbbbbb"
    "MZxMmmmmmmmmmmmm" "..........x....." "oooo....bz......" "bbbbbbbbIIIIIIII"
    "MMw.xxMZe.w..bx." "mmmmxxx.mmmmmmmm" "bbbbbbbbzzxb...." "x.xx..mm......mm";
constexpr char kTwoBytes[] =
    "mmmmx.....x.xm.M" "mmmmmmmmmmmmmmmm" "mmmmxxxxmmmmmmmm" "......x.xxxxxxxx"
    "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "MMMMmmm.mmxxmmmm"
    "zzzzzzzzzzzzzzzz" "mmmmmmmmmmmmmmmm" "...mMmxx...mMmmm" "mmmmmmmmmmMmmmmm"
    "mmMmMMMm........" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm";

constexpr std::uint32_t bit(unsigned number) { return number < kGeneral ? 1u << number : 0; }

class Reader {
public:
    Reader(const std::uint8_t* bytes, std::size_t size, Instruction& result)
        : start_(bytes), at_(bytes), end_(bytes + size), result_(result) {}

    bool run() {
        result_ = Instruction{};
        prefixes();
        const std::uint8_t first = byte();
        const bool is_known = first == 0x62   ? evex()
                              : first == 0xc5 ? vex_of_two_bytes()
                              : first == 0xc4 ? vex_of_three_bytes()
                              : first == 0x0f ? two_bytes(byte())
                                              : one_byte(first);
        result_.length = static_cast<std::uint8_t>(at_ - start_);
        return good_ && is_known;
    }

private:
    template <typename T>
    std::int64_t signed_number() {
        T value{};
        if (static_cast<std::size_t>(end_ - at_) < sizeof value) {
            good_ = false;
            return 0;
        }
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return static_cast<std::int64_t>(value);
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(signed_number<std::uint8_t>()); }
    void prefixes() {
        for (; at_ < end_; ++at_) {
            if (*at_ == 0x66) is_16_ = true;
            else if (*at_ == 0x64 || *at_ == 0x65 || *at_ == 0x67) is_plain_memory_ = false;
            else if (*at_ == 0xf2 || *at_ == 0xf3) repeats_ = *at_;
            else if (*at_ != 0xf0 && *at_ != 0x2e && *at_ != 0x36 && *at_ != 0x3e && *at_ != 0x26) break;
        }
        if (at_ < end_ && (*at_ & 0xf0u) == 0x40) rex_ = *at_++;
    }
    bool is_wide() const { return (rex_ & 8u) != 0; }

    // The operand that may be memory, and the register beside it.
    void operand() {
        const std::uint8_t modes = byte();
        mode_ = modes >> 6;
        field_ = modes >> 3 & 7u;
        register_ = field_ | (rex_ & 4u) << 1;
        base_ = (modes & 7u) | (rex_ & 1u) << 3;
        if (mode_ == 3) return;
        unsigned low = modes & 7u;
        if (low == 4) {
            const std::uint8_t index = byte();
            if (((index >> 3 & 7u) | (rex_ & 2u) << 2) != 4) is_plain_memory_ = false;
            low = index & 7u;
            base_ = low | (rex_ & 1u) << 3;
        }
        const bool has_base = mode_ != 0 || low != 5;
        if (!has_base) is_plain_memory_ = false;  // counts from the next instruction, or from zero
        displacement_ = mode_ == 1                ? signed_number<std::int8_t>()
                        : mode_ == 2 || !has_base ? signed_number<std::int32_t>()
                                                  : 0;
    }
    std::uint32_t changed_operand() const { return mode_ == 3 ? bit(base_) : 0; }
    std::int64_t number_of_operation() {
        return is_16_ ? signed_number<std::int16_t>() : signed_number<std::int32_t>();
    }

    bool follow(char what, unsigned code) {
        switch (what) {
            case 'm': operand(); return true;
            case 'b': number_ = signed_number<std::int8_t>(); return true;
            case 'z':
                number_ = (code & 0xfeu) == 0xe8 ? signed_number<std::int32_t>() : number_of_operation();
                return true;
            case 'M': operand(); number_ = signed_number<std::int8_t>(); return true;
            case 'Z': operand(); number_ = number_of_operation(); return true;
            case 'o': signed_number<std::int64_t>(); return true;
            case 'I': is_wide() ? signed_number<std::int64_t>() : number_of_operation(); return true;
            case 'w': signed_number<std::int16_t>(); return true;
            case 'e': signed_number<std::int16_t>(); byte(); return true;
            default: return what == '.';
        }
    }

    bool one_byte(unsigned code) {
        if (!follow(kOneByte[code], code)) return false;
        if ((code & 0xfeu) == 0xf6 && field_ < 2) code == 0xf6 ? signed_number<std::int8_t>() : number_of_operation();
        const unsigned last = (code & 7u) | (rex_ & 1u) << 3;
        if ((code & 0xf8u) == 0x50) return is(Instruction::kPush, kNone, last);
        if ((code & 0xf8u) == 0x58) return is(Instruction::kPop, last, kNone);
        if ((code & 0xf0u) == 0x70 || (code & 0xfcu) == 0xe0) return goes(Instruction::kBranch, code);
        switch (code) {
            case 0x68: case 0x6a: return is(Instruction::kPush, kNone, kNone);
            case 0x89: case 0x8b: case 0x8d: return move(code);
            case 0x81: case 0x83: return calculate();
            case 0x9c: return is(Instruction::kPush, kNone, kNone);
            case 0x9d: return is(Instruction::kPop, kNone, kNone);
            case 0xc2: case 0xc3: return is(Instruction::kReturn, kNone, kNone);
            case 0xc9: return is(Instruction::kLeave, kNone, kNone);
            case 0x8f:
            case 0xc8:
            case 0xca:
            case 0xcb:
            case 0xcc:
            case 0xcf:
            case 0xf4:
                return is(Instruction::kEnd, kNone, kNone);
            case 0xe8: return goes(Instruction::kCall, code);
            case 0xe9: case 0xeb: return goes(Instruction::kJump, code);
            case 0xff: return indirect();
            default: result_.changed = changed_by_one_byte(code); return true;
        }
    }
    bool is(Instruction::Kind kind, unsigned to, unsigned from) {
        result_.kind = kind;
        result_.to = to;
        result_.from = from;
        return true;
    }
    bool goes(Instruction::Kind kind, unsigned code) {
        if ((code & 0xfcu) == 0xe0) result_.changed = bit(kRcx);
        result_.number = number_;
        return is(kind, kNone, kNone);
    }
    bool move(unsigned code) {
        const bool is_memory = mode_ != 3;
        result_.number = is_memory ? displacement_ : 0;
        if (code == 0x89 && is_memory)
            return !is_wide() || !is_plain_memory_ || is(Instruction::kStore, base_, register_);
        const unsigned to = code == 0x89 ? base_ : register_, from = code == 0x89 ? register_ : base_;
        if (is_wide() && (!is_memory || is_plain_memory_))
            return is(!is_memory     ? Instruction::kMove
                      : code == 0x8b ? Instruction::kLoad
                                     : Instruction::kAddress,
                      to, from);
        result_.changed = bit(to);
        return true;
    }
    bool calculate() {
        const bool is_sum = field_ == 0 || field_ == 5;
        if (is_sum && is_wide() && mode_ == 3) {
            result_.number = field_ == 0 ? number_ : -number_;
            return is(Instruction::kAddress, base_, base_);
        }
        result_.changed = field_ == 7 ? 0 : changed_operand();
        return true;
    }
    bool indirect() {
        if (field_ == 2) return is(Instruction::kCall, kNone, kNone);
        if (field_ == 6) return is(Instruction::kPush, kNone, mode_ == 3 ? base_ : kNone);
        if (field_ > 2) return is(Instruction::kEnd, kNone, kNone);
        result_.changed = changed_operand();
        return true;
    }
    std::uint32_t changed_by_one_byte(unsigned code) const {
        const unsigned last = (code & 7u) | (rex_ & 1u) << 3;
        if (code < 0x40) {
            if (code >= 0x38) return 0;  // compares
            return (code & 6u) == 0 ? changed_operand() : (code & 6u) == 2 ? bit(register_) : bit(kRax);
        }
        if (code == 0x63 || code == 0x69 || code == 0x6b || code == 0x8a) return bit(register_);
        if (code == 0x84 || code == 0x85 || code == 0x90 || (code >= 0xd8 && code <= 0xdf)) return 0;
        if (code == 0x80) return field_ == 7 ? 0 : changed_operand();
        if (code > 0x90 && code < 0x98) return bit(last) | bit(kRax);
        if ((code & 0xf0u) == 0xb0) return bit(last);
        if (code == 0xf6 || code == 0xf7)
            return field_ < 2 ? 0 : field_ < 4 ? changed_operand() : bit(kRax) | bit(kRdx);
        if (kOneByte[code] == 'm' || kOneByte[code] == 'M' || kOneByte[code] == 'Z')
            return changed_operand() | (code == 0x86 || code == 0x87 ? bit(register_) : 0);
        return bit(kRax) | bit(kRdx) | bit(kRcx) | bit(kRsi) | bit(kRdi);  // instructions on texts, and what is rare
    }

    bool two_bytes(unsigned code) {
        if (code == 0x38 || code == 0x3a) {
            const unsigned third = byte();
            follow(code == 0x38 ? 'm' : 'M', third);
            if (code == 0x38 && third >= 0xf0) result_.changed = changed_operand() | bit(register_);
            if (code == 0x3a && third >= 0x14 && third <= 0x17) result_.changed = changed_operand();
            return true;
        }
        if (!follow(kTwoBytes[code], 0)) return false;
        if ((code & 0xf0u) == 0x80) return goes(Instruction::kBranch, 0);
        if (code == 0x0b || code == 0x05) {
            result_.changed = bit(kRax) | bit(kRcx) | bit(kR11);
            return is(code == 0x0b ? Instruction::kEnd : Instruction::kOther, kNone, kNone);
        }
        if ((code & 0xf8u) == 0xc8)
            result_.changed = bit((code & 7u) | (rex_ & 1u) << 3);
        else if (writes_general(code))
            result_.changed = changed_by_two_bytes(code) | (code == 0xa2 || code == 0xc7 ? 0xfu : 0);
        return true;
    }
    // Whether an opcode of two bytes is one of those few that write general registers.
    bool writes_general(unsigned code) const {
        if ((code & 0xf0u) == 0x40 || (code & 0xf0u) == 0x90 || (code & 0xe0u) == 0xa0) return true;
        if (code <= 0x03 || (code >= 0x30 && code < 0x38) || code == 0xc0 || code == 0xc1 || code == 0xc7) return true;
        return code == 0x2c || code == 0x2d || code == 0x50 || code == 0xc5 || code == 0xd7 ||
               (code == 0x7e && repeats_ == 0) || code == 0x78 || code == 0x79;
    }

    // Of opcodes that write general registers; the other operand of some is a vector.
    std::uint32_t changed_by_two_bytes(unsigned code) const {
        if (code == 0x7e || code == 0xba) return changed_operand();
        const bool is_from_vector = code == 0x2c || code == 0x2d || code == 0x50 || code == 0x78 || code == 0x79 ||
                                    code == 0x93 || code == 0xc5 || code == 0xd7;
        return bit(register_) | (is_from_vector ? 0 : changed_operand());
    }

    bool vex_of_two_bytes() {
        const std::uint8_t last = byte();
        rex_ = (~static_cast<unsigned>(last) >> 5 & 4u);
        return vex(1, last);
    }
    bool vex_of_three_bytes() {
        const std::uint8_t first = byte();
        rex_ = (~static_cast<unsigned>(first) >> 5 & 7u);
        return vex(first & 0x1fu, byte());
    }
    // `last`: the byte before the opcode.
    bool vex(unsigned map, std::uint8_t last) {
        repeats_ = (last & 2u) != 0 ? 0xf3 : 0;
        return vector(map, byte(), ~static_cast<unsigned>(last) >> 3 & 15u);
    }
    bool evex() {
        const std::uint8_t first = byte(), second = byte();
        byte();
        rex_ = (~static_cast<unsigned>(first) >> 5 & 7u);
        repeats_ = (second & 2u) != 0 ? 0xf3 : 0;
        return vector(first & 7u, byte(), ~static_cast<unsigned>(second) >> 3 & 15u);
    }
    // `other`: the register that is in the prefix.
    bool vector(unsigned map, unsigned code, unsigned other) {
        if (map == 0 || map == 4 || map > 6) return false;
        const char what = map == 1 ? kTwoBytes[code] : map == 3 ? 'M' : 'm';
        if (!follow(what == 'M' || what == '.' ? what : 'm', 0)) return false;
        const bool is_of_masks = (code & 0xf0u) == 0x40 || ((code & 0xf0u) == 0x90 && code != 0x93);
        if (map == 1 && !is_of_masks && code > 0x10 && writes_general(code))
            result_.changed = changed_by_two_bytes(code);
        if (map == 2 && code >= 0xf0) result_.changed = changed_operand() | bit(register_) | bit(other);
        if (map == 3 && code >= 0x14 && code <= 0x17) result_.changed = changed_operand();
        if (map == 3 && code == 0xf0) result_.changed = bit(register_);
        return true;
    }

    const std::uint8_t *start_, *at_, *end_;
    Instruction& result_;
    bool good_ = true, is_16_ = false, is_plain_memory_ = true;
    unsigned rex_ = 0, repeats_ = 0;
    unsigned mode_ = 0, field_ = 0, register_ = kNone, base_ = kNone;
    std::int64_t displacement_ = 0, number_ = 0;
};

}  // namespace

bool read_instruction(const std::uint8_t* bytes, std::size_t size, Instruction& instruction) {
    return Reader(bytes, size, instruction).run();
}

}  // namespace rocpd::x86
