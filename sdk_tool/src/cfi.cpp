#include "cfi.h"

#include <cstring>
#include <vector>

#include "live_memory.h"

namespace rocpd::cfi {
namespace {

constexpr std::size_t kLargestEntry = 32 * kPage;  // of .eh_frame; real ones have some kilobytes
constexpr int kMostOperations = 1000;

// Bytes of an entry with the address that they have in the process.
class Bytes {
public:
    Bytes(const std::string& text, std::uint64_t address) : text_(text), address_(address), end_(text.size()) {}

    bool is_good() const { return good_; }
    bool at_end() const { return at_ >= end_ || !good_; }
    std::uint64_t address() const { return address_ + at_; }
    std::size_t at() const { return at_; }
    void skip_to(std::size_t at) {
        good_ = good_ && at >= at_ && at <= end_;
        at_ = at;
    }

    template <typename T>
    T plain() {
        T value{};
        if (end_ - at_ < sizeof value || at_ > end_) {
            good_ = false;
            return value;
        }
        std::memcpy(&value, text_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::uint64_t uleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = plain<std::uint8_t>();
            if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7fu) << shift;
            if ((byte & 0x80u) == 0 || !good_) return value;
        }
    }
    std::int64_t sleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0;;) {
            const auto byte = plain<std::uint8_t>();
            if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7fu) << shift;
            shift += 7;
            if ((byte & 0x80u) != 0 && good_) continue;
            if (shift < 64 && (byte & 0x40u) != 0) value |= ~std::uint64_t{0} << shift;
            return static_cast<std::int64_t>(value);
        }
    }
    std::string block() {
        const std::uint64_t size = uleb();
        if (!good_ || size > end_ - at_) {
            good_ = false;
            return {};
        }
        std::string text = text_.substr(at_, size);
        at_ += size;
        return text;
    }
    // A pointer in one of the ways of .eh_frame; `base` is what relative ones of the table count from.
    std::uint64_t pointer(std::uint8_t encoding, std::uint64_t base) {
        if (encoding == 0xff) return 0;  // omitted
        const std::uint64_t here = address();
        const std::uint64_t value = number(encoding & 0x0fu);
        const unsigned relative = encoding & 0x70u;
        if (relative == 0x10) return here + value;
        if (relative == 0x30) return base + value;
        good_ = good_ && relative == 0;
        return value;
    }

private:
    std::uint64_t number(unsigned format) {
        switch (format) {
            case 0x01: return uleb();
            case 0x02: return plain<std::uint16_t>();
            case 0x03: return plain<std::uint32_t>();
            case 0x09: return static_cast<std::uint64_t>(sleb());
            case 0x0a: return static_cast<std::uint64_t>(std::int64_t{plain<std::int16_t>()});
            case 0x0b: return static_cast<std::uint64_t>(std::int64_t{plain<std::int32_t>()});
            case 0x00: case 0x04: case 0x0c: return plain<std::uint64_t>();
            default: good_ = false; return 0;
        }
    }

    const std::string& text_;
    const std::uint64_t address_;
    const std::size_t end_;
    std::size_t at_ = 0;
    bool good_ = true;
};

// What is said once for many functions.
struct Common {
    std::uint64_t code_unit = 1;
    std::int64_t data_unit = 1;
    std::uint8_t pointers = 0;
    bool has_sizes = false;  // of the augmentation
    bool is_signal_frame = false;
    std::string instructions;
    std::uint64_t instructions_at = 0;
};

// Returns the bytes of an entry after its length; empty where there is none.
std::string entry_at(std::uint64_t address) {
    std::uint32_t length = 0;
    if (!read_live(address, length) || length == 0 || length > kLargestEntry) return {};
    std::string text(length, '\0');
    return copy_live(address + sizeof length, text.data(), length) == length ? text : std::string();
}

bool read_common(std::uint64_t address, Common& common) {
    const std::string text = entry_at(address);
    Bytes bytes(text, address + 4);
    if (bytes.plain<std::uint32_t>() != 0) return false;
    const auto version = bytes.plain<std::uint8_t>();
    std::string augmentation;
    for (char c = bytes.plain<char>(); c != '\0' && bytes.is_good(); c = bytes.plain<char>()) augmentation += c;
    if (!bytes.is_good() || (version != 1 && version != 3)) return false;
    common.code_unit = bytes.uleb();
    common.data_unit = bytes.sleb();
    const std::uint64_t result = version == 1 ? bytes.plain<std::uint8_t>() : bytes.uleb();
    if (result != kReturn) return false;
    std::size_t end = bytes.at();
    if (!augmentation.empty()) {
        if (augmentation[0] != 'z') return false;
        common.has_sizes = true;
        end = static_cast<std::size_t>(bytes.uleb());
        end += bytes.at();
        for (const char letter : augmentation.substr(1)) {
            if (letter == 'R') common.pointers = bytes.plain<std::uint8_t>();
            if (letter == 'L') bytes.plain<std::uint8_t>();
            if (letter == 'S') common.is_signal_frame = true;
            if (letter == 'P') bytes.pointer(bytes.plain<std::uint8_t>(), 0);
        }
    }
    bytes.skip_to(end);
    if (!bytes.is_good()) return false;
    common.instructions = text.substr(end);
    common.instructions_at = address + 4 + end;
    return true;
}

// Runs the instructions of an entry up to one of the program.
class Program {
public:
    Program(const Common& common, Rule& rule, std::uint64_t from, std::uint64_t until)
        : common_(common), rule_(rule), location_(from), until_(until) {}

    bool run(const std::string& text, std::uint64_t address) {
        Bytes bytes(text, address);
        while (!bytes.at_end() && location_ <= until_)
            if (!one(bytes)) return false;
        return bytes.is_good();
    }
    // What holds at the start, for instructions that go back to it.
    void keep_start() { start_ = rule_; }

private:
    Place* place(std::uint64_t number) { return number < kRegisters ? &rule_.places[number] : &ignored_; }
    std::int64_t scaled(std::uint64_t factor) const { return static_cast<std::int64_t>(factor) * common_.data_unit; }
    bool advance(std::uint64_t units) {
        location_ += units * common_.code_unit;
        return true;
    }
    static bool set(Place* place, Place::Kind kind, std::int64_t offset = 0, std::uint64_t number = 0) {
        *place = Place{kind, static_cast<std::uint16_t>(number), offset, {}};
        return true;
    }
    static bool set(Place* place, Place::Kind kind, std::string expression) {
        *place = Place{kind, 0, 0, std::move(expression)};
        return true;
    }
    bool restore(std::uint64_t number) {
        if (number < kRegisters) rule_.places[number] = start_.places[number];
        return true;
    }
    bool one(Bytes& bytes) {
        const auto code = bytes.plain<std::uint8_t>();
        const unsigned low = code & 0x3fu;
        if ((code & 0xc0u) == 0x40) return advance(low);
        if ((code & 0xc0u) == 0x80) return set(place(low), Place::kInFrame, scaled(bytes.uleb()));
        if ((code & 0xc0u) == 0xc0) return restore(low);
        if (code <= 0x04) return move(code, bytes);
        if (code >= 0x0a && code <= 0x0b) return remember(code == 0x0a);
        if (code == 0x0c || code == 0x0d || code == 0x0e || code == 0x0f || code == 0x12 || code == 0x13)
            return frame(code, bytes);
        return registers(code, bytes);
    }
    bool move(std::uint8_t code, Bytes& bytes) {
        switch (code) {
            case 0x00: return true;
            case 0x01: location_ = bytes.pointer(common_.pointers, 0); return bytes.is_good();
            case 0x02: return advance(bytes.plain<std::uint8_t>());
            case 0x03: return advance(bytes.plain<std::uint16_t>());
            default: return advance(bytes.plain<std::uint32_t>());
        }
    }
    bool remember(bool remembers) {
        if (remembers) {
            kept_.push_back(rule_);
            return kept_.size() < 64;
        }
        if (kept_.empty()) return false;
        rule_ = kept_.back();
        kept_.pop_back();
        return true;
    }
    bool frame(std::uint8_t code, Bytes& bytes) {
        Place& place = rule_.frame;
        switch (code) {
            case 0x0c: {
                const std::uint64_t number = bytes.uleb();
                return set(&place, Place::kRegister, static_cast<std::int64_t>(bytes.uleb()), number);
            }
            case 0x12: {
                const std::uint64_t number = bytes.uleb();
                return set(&place, Place::kRegister, bytes.sleb() * common_.data_unit, number);
            }
            case 0x0d: place.number = static_cast<std::uint16_t>(bytes.uleb()); return true;
            case 0x0e: place.offset = static_cast<std::int64_t>(bytes.uleb()); return true;
            case 0x13: place.offset = bytes.sleb() * common_.data_unit; return true;
            default: return set(&place, Place::kExpression, bytes.block());
        }
    }
    bool registers(std::uint8_t code, Bytes& bytes) {
        if (code == 0x2e) return bytes.uleb(), true;  // the size of arguments
        const std::uint64_t number = bytes.uleb();
        switch (code) {
            case 0x05: return set(place(number), Place::kInFrame, scaled(bytes.uleb()));
            case 0x06: return restore(number);
            case 0x07: return set(place(number), Place::kUndefined);
            case 0x08: return set(place(number), Place::kSame);
            case 0x09: return set(place(number), Place::kRegister, 0, bytes.uleb());
            case 0x10: return set(place(number), Place::kAtExpression, bytes.block());
            case 0x11: return set(place(number), Place::kInFrame, bytes.sleb() * common_.data_unit);
            case 0x14: return set(place(number), Place::kFrame, scaled(bytes.uleb()));
            case 0x15: return set(place(number), Place::kFrame, bytes.sleb() * common_.data_unit);
            case 0x16: return set(place(number), Place::kExpression, bytes.block());
            default: return false;
        }
    }

    const Common& common_;
    Rule& rule_;
    std::uint64_t location_;
    const std::uint64_t until_;
    Rule start_;
    std::vector<Rule> kept_;
    Place ignored_;
};

// Returns the address of the entry of an instruction's function, 0 where there is none.
std::uint64_t find_entry(std::uint64_t header, std::uint64_t instruction) {
    struct {
        std::uint8_t version, pointer, count, table;
        std::int32_t eh_frame;
        std::uint32_t entries;
    } top{};
    // The one form that linkers write: a sorted table of pairs, relative to the header.
    if (!read_live(header, top) || top.version != 1 || top.count != 0x03 || top.table != 0x3b || top.pointer != 0x1b)
        return 0;
    struct {
        std::int32_t function, entry;
    } pair{};
    std::uint32_t low = 0, high = top.entries;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (!read_live(header + sizeof top + middle * sizeof pair, pair)) return 0;
        if (header + static_cast<std::uint64_t>(std::int64_t{pair.function}) <= instruction)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !read_live(header + sizeof top + (low - 1) * sizeof pair, pair)) return 0;
    return header + static_cast<std::uint64_t>(std::int64_t{pair.entry});
}

// Calculates a DWARF expression.
class Expression {
public:
    Expression(const Registers& registers, const ReadStack& stack) : registers_(registers), stack_(stack) {}

    bool run(const std::string& text, const std::uint64_t* first, std::uint64_t& result) {
        if (first != nullptr) push(*first);
        Bytes bytes(text, 0);
        for (int count = 0; !bytes.at_end(); ++count)
            if (count > kMostOperations || !one(bytes) || !good_) return false;
        result = pop();
        return good_ && bytes.is_good();
    }

private:
    bool push(std::uint64_t value) {
        values_.push_back(value);
        return values_.size() < 256;
    }
    std::uint64_t pop() {
        good_ = good_ && !values_.empty();
        if (!good_) return 0;
        const std::uint64_t value = values_.back();
        values_.pop_back();
        return value;
    }
    bool one(Bytes& bytes) {
        const auto code = bytes.plain<std::uint8_t>();
        if (code >= 0x30 && code <= 0x4f) return push(code - 0x30u);
        if (code >= 0x70 && code <= 0x8f) {
            const unsigned number = code - 0x70u;
            return registers_.has(number) &&
                   push(registers_.value[number] + static_cast<std::uint64_t>(bytes.sleb()));
        }
        if (code >= 0x08 && code <= 0x11) return constant(code, bytes);
        if (code == 0x23) return push(pop() + bytes.uleb());
        if (code == 0x06) {
            std::uint64_t value = 0;
            return stack_(pop(), value) && push(value);
        }
        if (code == 0x12) return values_.empty() ? false : push(values_.back());
        return code == 0x96 || two(code);
    }
    bool constant(std::uint8_t code, Bytes& bytes) {
        const auto as = [](auto value) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); };
        switch (code) {
            case 0x08: return push(bytes.plain<std::uint8_t>());
            case 0x09: return push(as(bytes.plain<std::int8_t>()));
            case 0x0a: return push(bytes.plain<std::uint16_t>());
            case 0x0b: return push(as(bytes.plain<std::int16_t>()));
            case 0x0c: return push(bytes.plain<std::uint32_t>());
            case 0x0d: return push(as(bytes.plain<std::int32_t>()));
            case 0x10: return push(bytes.uleb());
            case 0x11: return push(as(bytes.sleb()));
            default: return push(bytes.plain<std::uint64_t>());
        }
    }
    bool two(std::uint8_t code) {
        const std::uint64_t b = pop(), a = pop();
        const auto left = static_cast<std::int64_t>(a), right = static_cast<std::int64_t>(b);
        switch (code) {
            case 0x1a: return push(a & b);
            case 0x1c: return push(a - b);
            case 0x1e: return push(a * b);
            case 0x21: return push(a | b);
            case 0x22: return push(a + b);
            case 0x24: return push(b < 64 ? a << b : 0);
            case 0x25: return push(b < 64 ? a >> b : 0);
            case 0x27: return push(a ^ b);
            case 0x29: return push(left == right ? 1 : 0);
            case 0x2a: return push(left >= right ? 1 : 0);
            case 0x2b: return push(left > right ? 1 : 0);
            case 0x2c: return push(left <= right ? 1 : 0);
            case 0x2d: return push(left < right ? 1 : 0);
            case 0x2e: return push(left != right ? 1 : 0);
            default: return false;
        }
    }

    const Registers& registers_;
    const ReadStack& stack_;
    std::vector<std::uint64_t> values_;
    bool good_ = true;
};

bool frame_address(const Rule& rule, const ReadStack& stack, const Registers& registers, std::uint64_t& address) {
    if (rule.frame.kind == Place::kExpression)
        return Expression(registers, stack).run(rule.frame.expression, nullptr, address);
    if (rule.frame.kind != Place::kRegister || !registers.has(rule.frame.number)) return false;
    address = registers.value[rule.frame.number] + static_cast<std::uint64_t>(rule.frame.offset);
    return true;
}

// Finds one register of the caller. Returns false where it cannot be known.
bool find_register(const Place& place, std::uint64_t frame, const ReadStack& stack, const Registers& before,
                   std::uint64_t& value) {
    std::uint64_t at = frame + static_cast<std::uint64_t>(place.offset);
    switch (place.kind) {
        case Place::kInFrame: return stack(at, value);
        case Place::kFrame: value = at; return true;
        case Place::kRegister:
            value = before.value[place.number % kRegisters] + static_cast<std::uint64_t>(place.offset);
            return before.has(place.number);
        case Place::kAtExpression:
            return Expression(before, stack).run(place.expression, &frame, at) && stack(at, value);
        case Place::kExpression: return Expression(before, stack).run(place.expression, &frame, value);
        default: return false;
    }
}

}  // namespace

bool find_rule(std::uint64_t header, std::uint64_t instruction, Rule& rule) {
    const std::uint64_t at = find_entry(header, instruction);
    const std::string text = at != 0 ? entry_at(at) : std::string();
    if (text.empty()) return false;
    Bytes bytes(text, at + 4);
    const std::uint64_t here = bytes.address();
    Common common;
    if (!read_common(here - bytes.plain<std::uint32_t>(), common)) return false;
    rule = Rule{};
    rule.function = bytes.pointer(common.pointers, 0);
    const std::uint64_t size = bytes.pointer(common.pointers & 0x0fu, 0);
    if (!bytes.is_good() || instruction < rule.function || instruction - rule.function >= size) return false;
    rule.is_signal_frame = common.is_signal_frame;
    if (common.has_sizes) {
        const std::uint64_t augmentation = bytes.uleb();
        bytes.skip_to(bytes.at() + static_cast<std::size_t>(augmentation));
        if (!bytes.is_good()) return false;
    }
    Program program(common, rule, rule.function, instruction);
    if (!program.run(common.instructions, common.instructions_at)) return false;
    program.keep_start();
    return rule.is_known = program.run(text.substr(bytes.at()), bytes.address());
}

bool step(const Rule& rule, const ReadStack& stack, Registers& registers) {
    std::uint64_t frame = 0;
    if (!frame_address(rule, stack, registers, frame)) return false;
    Registers caller;
    for (unsigned number = 0; number < kRegisters; ++number) {
        const Place& place = rule.places[number];
        std::uint64_t value = 0;
        if (place.kind == Place::kSame && number != kReturn && registers.has(number))
            caller.set(number, registers.value[number]);
        else if (place.kind != Place::kSame && find_register(place, frame, stack, registers, value))
            caller.set(number, value);
    }
    if (rule.places[kStackPointer].kind == Place::kSame) caller.set(kStackPointer, frame);
    registers = caller;
    return true;
}

bool step_by_frame_pointer(const ReadStack& stack, Registers& registers) {
    if (!registers.has(kFramePointer) || !registers.has(kStackPointer)) return false;
    const std::uint64_t frame = registers.value[kFramePointer];
    std::uint64_t before = 0, back = 0;
    if (frame < registers.value[kStackPointer] || frame % 8 != 0 || !stack(frame, before) || !stack(frame + 8, back))
        return false;
    registers = Registers{};
    registers.set(kFramePointer, before);
    registers.set(kStackPointer, frame + 16);
    registers.set(kReturn, back);
    return true;
}

}  // namespace rocpd::cfi
