#include "code_rules.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "instructions.h"
#include "live_memory.h"

namespace rocpd::cfi {
namespace {

using x86::Instruction;

constexpr int kMostInstructions = 20'000;  // that are followed
constexpr std::size_t kMostBranches = 512;

// DWARF's numbers of registers by those of instructions.
constexpr unsigned kNumbers[x86::kGeneral] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr unsigned kKept[] = {3, 5, 12, 13, 14, 15};  // that a function leaves to its caller as they were; and kRsp

// What a register holds, in terms of the registers at the start.
struct Value {
    enum Kind : std::uint8_t { kUnknown, kSum, kLoaded };
    Kind kind = kUnknown;
    unsigned base = 0;        // kSum: this register and offset; kLoaded: 8 bytes at that address
    std::int64_t offset = 0;

    bool is_at(const Value& other) const {
        return kind == kSum && other.kind == kSum && base == other.base && offset == other.offset;
    }
    Value plus(std::int64_t number) const { return kind == kSum ? Value{kSum, base, offset + number} : Value{}; }
};

struct Written {
    Value at, value;
};

// The registers on one way through the code.
struct Way {
    std::uint64_t at = 0;
    Value registers[x86::kGeneral];
    std::vector<Written> written;  // to the stack

    Value read(const Value& address) const {
        const auto last = std::find_if(written.rbegin(), written.rend(),
                                       [&](const Written& each) { return each.at.is_at(address); });
        if (last != written.rend()) return last->value;
        return address.kind == Value::kSum ? Value{Value::kLoaded, address.base, address.offset} : Value{};
    }
    void push(unsigned from) {
        Value& top = registers[x86::kRsp];
        const Value value = from < x86::kGeneral ? registers[from] : Value{};
        top = top.plus(-8);
        if (top.kind == Value::kSum) written.push_back({top, value});
    }
    void pop(unsigned to) {
        const Value value = read(registers[x86::kRsp]);
        registers[x86::kRsp] = registers[x86::kRsp].plus(8);
        if (to < x86::kGeneral) registers[to] = value;
    }
    void call() {
        for (const unsigned each : {x86::kRax, x86::kRcx, x86::kRdx, x86::kRsi, x86::kRdi, 8u, 9u, 10u, 11u})
            registers[each] = {};
    }
    void apply(const Instruction& instruction);
};

void Way::apply(const Instruction& instruction) {
    const unsigned to = instruction.to, from = instruction.from;
    switch (instruction.kind) {
        case Instruction::kPush: push(from); break;
        case Instruction::kPop: pop(to); break;
        case Instruction::kMove: registers[to] = registers[from]; break;
        case Instruction::kLoad: registers[to] = read(registers[from].plus(instruction.number)); break;
        case Instruction::kAddress: registers[to] = registers[from].plus(instruction.number); break;
        case Instruction::kCall: call(); break;
        case Instruction::kLeave:
            registers[x86::kRsp] = registers[x86::kRbp];
            pop(x86::kRbp);
            break;
        case Instruction::kStore:
            if (const Value address = registers[to].plus(instruction.number); address.kind == Value::kSum)
                written.push_back({address, registers[from]});
            break;
        default: break;
    }
    for (unsigned i = 0; i < x86::kGeneral; ++i)
        if ((instruction.changed >> i & 1u) != 0) registers[i] = {};
}

class Follower {
public:
    explicit Follower(std::uint64_t address) {
        Way first;
        first.at = address;
        for (unsigned i = 0; i < x86::kGeneral; ++i) first.registers[i] = {Value::kSum, i, 0};
        ways_.push_back(std::move(first));
    }

    // Returns the registers at an instruction that returns. Ways through calls come last: a call may not come back,
    // and what stands behind it be of another function.
    std::optional<Way> to_return() {
        for (int left = kMostInstructions; !ways_.empty() || !behind_calls_.empty();) {
            std::vector<Way>& from = ways_.empty() ? behind_calls_ : ways_;
            Way way = std::move(from.back());
            from.pop_back();
            if (follow(way, left)) return way;
            if (left <= 0) break;
        }
        return std::nullopt;
    }

private:
    // Follows a way until it returns, or ends otherwise: then false.
    bool follow(Way& way, int& left) {
        Instruction instruction;
        for (; left > 0 && seen_.insert(way.at).second && read(way.at, instruction); --left) {
            if (instruction.kind == Instruction::kReturn) return true;
            if (instruction.kind == Instruction::kEnd) return false;
            way.apply(instruction);
            way.at += instruction.length;
            const std::uint64_t there = way.at + static_cast<std::uint64_t>(instruction.number);
            if (instruction.kind == Instruction::kJump) way.at = there;
            if (instruction.kind == Instruction::kBranch && ways_.size() < kMostBranches) {
                ways_.push_back(way);
                const bool is_shorter = instruction.number > 0;  // most ways ahead lead past what is done in between
                (is_shorter ? way : ways_.back()).at = there;
            }
            if (instruction.kind == Instruction::kCall) {
                behind_calls_.push_back(std::move(way));
                return false;
            }
        }
        return false;
    }
    bool read(std::uint64_t address, Instruction& instruction) {
        const std::uint64_t at = address - start_;
        if (address < start_ || at >= size_ || (size_ - at < x86::kLongestInstruction && size_ == sizeof bytes_)) {
            start_ = address;
            size_ = copy_live(address, bytes_, sizeof bytes_);
            return size_ > 0 && x86::read_instruction(bytes_, size_, instruction);
        }
        return x86::read_instruction(bytes_ + at, size_ - at, instruction);
    }

    std::vector<Way> ways_, behind_calls_;
    std::unordered_set<std::uint64_t> seen_;
    std::uint8_t bytes_[kPage];
    std::uint64_t start_ = 0;
    std::size_t size_ = 0;
};

}  // namespace

bool follow_code(std::uint64_t address, Rule& rule) {
    const std::optional<Way> end = Follower(address).to_return();
    if (!end || end->registers[x86::kRsp].kind != Value::kSum) return false;
    const Value& top = end->registers[x86::kRsp];
    const std::int64_t frame = top.offset + 8;
    rule = Rule{};
    rule.is_known = rule.is_inferred = true;
    rule.frame = {Place::kRegister, static_cast<std::uint16_t>(kNumbers[top.base]), frame, {}};
    for (Place& place : rule.places) place.kind = Place::kUndefined;
    rule.places[kStackPointer].kind = Place::kSame;
    rule.places[kReturn] = {Place::kInFrame, 0, -8, {}};
    for (const unsigned number : kKept) {
        const Value& value = end->registers[number];
        Place& place = rule.places[kNumbers[number]];
        if (value.kind == Value::kSum)
            place = {Place::kRegister, static_cast<std::uint16_t>(kNumbers[value.base]), value.offset, {}};
        else if (value.kind == Value::kLoaded && value.base == top.base)
            place = {Place::kInFrame, 0, value.offset - frame, {}};
    }
    return true;
}

bool follows_call(std::uint64_t address) {
    std::uint8_t bytes[7];
    if (copy_live(address - sizeof bytes, bytes, sizeof bytes) != sizeof bytes) return false;
    for (std::size_t length = 2; length <= sizeof bytes; ++length) {
        Instruction instruction;
        if (x86::read_instruction(bytes + sizeof bytes - length, length, instruction) &&
            instruction.kind == Instruction::kCall && instruction.length == length)
            return true;
    }
    return false;
}

}  // namespace rocpd::cfi
