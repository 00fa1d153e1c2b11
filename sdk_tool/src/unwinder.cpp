#include "unwinder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "entry.h"
#include "json.h"

namespace rocpd {
namespace {

constexpr std::size_t kDeepestStack = 8192;   // frames
constexpr std::size_t kMostRules = 1 << 13;   // 8 MB
constexpr std::size_t kMostTexts = 1 << 15;
constexpr std::size_t kLargestPart = kLongestText / 2 - 256;  // of frames and of places, which share an entry [bytes]

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%lx", number);
    return text;
}

void add_element(std::string& list, const std::string& json) {
    if (!list.empty()) list += ", ";
    list += json;
}

std::string quoted(const std::string& text) {
    std::string json;
    append_json(json, text);
    return json;
}

}  // namespace

void Unwinder::look_around() {
    if (!modules_.read()) return;
    rules_.clear();
    texts_.clear();
    names_.clear();
}

const cfi::Rule* Unwinder::rule_at(std::uint64_t instruction) {
    if (rules_.size() > kMostRules) rules_.clear();
    const auto [known, is_new] = rules_.try_emplace(instruction);
    if (is_new) {
        const Module* module = modules_.at(instruction);
        const bool found = module != nullptr && module->unwinding != 0 &&
                           cfi::find_rule(module->unwinding, instruction, known->second);
        if (!found) known->second = cfi::Rule{};
    }
    return known->second.function != 0 ? &known->second : nullptr;
}

// Collects the instructions from the innermost function to the outermost. Returns whether that was reached.
bool Unwinder::walk(const StackCopy& copy) {
    const cfi::ReadStack stack = [&copy](std::uint64_t address, std::uint64_t& value) {
        const std::uint64_t at = address - copy.start;
        if (address < copy.start || at > copy.size || copy.size - at < sizeof value) return false;
        std::memcpy(&value, copy.bytes + at, sizeof value);
        return true;
    };
    cfi::Registers registers = copy.registers;
    instructions_.clear();
    for (std::uint64_t back = 0; instructions_.size() < kDeepestStack;) {
        if (!registers.has(cfi::kReturn)) return false;
        const std::uint64_t instruction = registers.value[cfi::kReturn] - back;
        if (registers.value[cfi::kReturn] == 0) return true;
        instructions_.push_back(instruction);
        const cfi::Rule* rule = rule_at(instruction);
        if (rule != nullptr && rule->places[cfi::kReturn].kind == cfi::Place::kUndefined) return true;
        const std::uint64_t before = registers.value[cfi::kStackPointer];
        const bool is_signal_frame = rule != nullptr && rule->is_signal_frame;
        if (rule != nullptr ? !cfi::step(*rule, stack, registers) : !cfi::step_by_frame_pointer(stack, registers))
            return false;
        if (!is_signal_frame && registers.value[cfi::kStackPointer] <= before) return false;
        back = is_signal_frame ? 0 : 1;  // a call may be the last instruction of its function
    }
    return false;
}

Unwinder::Names& Unwinder::names_of(const Module& module) {
    Names& names = names_[module.path];
    if (names.symbols == nullptr) {
        names.symbols = std::make_unique<Symbols>(module);
        names.lines = std::make_unique<DebugLines>(file_with(module, ".debug_info"));
    }
    return names;
}

void Unwinder::describe(std::uint64_t instruction, Text& text) {
    const Module* module = modules_.at(instruction);
    if (module == nullptr) {  // made by the program itself
        text = {quoted(hexadecimal(instruction)), "null", {}, false};
        return;
    }
    const std::uint64_t address = instruction - module->bias;
    Names& names = names_of(*module);
    std::vector<SourceFrame> frames = names.lines->at(address);
    if (frames.empty()) frames.emplace_back();
    SourceFrame& own = frames.back();
    // The symbol has the namespace and the types of arguments, which debugging information of local functions lacks.
    const std::string symbol = readable_name(names.symbols->at(address));
    if (!own.is_inlined && !symbol.empty()) own.function = symbol;
    if (own.function.empty()) {
        const cfi::Rule* rule = rule_at(instruction);
        own.function = module->name + "+" + hexadecimal(rule != nullptr ? rule->function - module->bias : address);
    }
    for (const SourceFrame& frame : frames) {
        std::string line = (frame.is_inlined ? "(inlined) in " : "") + frame.function;
        if (!frame.file.empty()) line += " at " + frame.file + ":" + std::to_string(frame.line);
        add_element(text.frames, quoted(line));
        const bool lacks_line = frame.file.empty();
        add_element(text.places, lacks_line ? quoted(module->name + "+" + hexadecimal(address)) : "null");
        if (lacks_line) text.build_id = quoted(module->name) + ": " + quoted(module->build_id);
    }
    text.is_python = own.function == "_PyEval_EvalFrameDefault";
}

const Unwinder::Text& Unwinder::text_at(std::uint64_t instruction) {
    const auto [known, is_new] = texts_.try_emplace(instruction);
    if (is_new) describe(instruction, known->second);
    return known->second;
}

// Adds the Python frames that one call of the interpreter's loop runs.
void Unwinder::add_python(const PythonFrames& python, std::uint32_t& next) {
    for (bool is_last = false; next < python.count && !is_last; ++next) {
        const std::string& json = python::text_of_frame(python.frames[next]);
        const auto [known, is_new] = python_texts_.try_emplace(json);
        if (is_new) known->second = {json, "null", {}, false};
        pieces_.push_back(&known->second);
        is_last = python.frames[next].is_outermost;
    }
}

// Python's frames stand for the calls of its loop. Where the loop has just been called and has no frame yet, there are
// fewer of them: the outermost are those that belong together.
void Unwinder::collect(const PythonFrames& python, bool is_whole) {
    pieces_.clear();
    std::size_t loops = 0, runs = 0;
    for (const std::uint64_t instruction : instructions_) loops += text_at(instruction).is_python ? 1 : 0;
    for (std::uint32_t i = 0; i < python.count; ++i) runs += python.frames[i].is_outermost ? 1 : 0;
    std::size_t without = is_whole && python.is_whole && loops > runs ? loops - runs : 0;
    std::uint32_t next = 0;
    for (const std::uint64_t instruction : instructions_) {
        const Text& text = text_at(instruction);
        const std::uint32_t before = next;
        if (text.is_python && without > 0)
            --without;
        else if (text.is_python)
            add_python(python, next);
        if (next == before) pieces_.push_back(&text);
    }
}

// Of a stack that is too long, the middle is left out: which function runs, and on whose behalf, stays.
void Unwinder::put_together(bool is_whole) {
    std::size_t first = 0, last = pieces_.size(), frames = 0, places = 0;
    const auto fits = [&](const Text& piece) {
        frames += piece.frames.size() + 2;
        places += piece.places.size() + piece.build_id.size() + 4;
        return frames < kLargestPart && places < kLargestPart;
    };
    for (bool from_inside = true; first < last && fits(*pieces_[from_inside ? first : last - 1]);
         from_inside = !from_inside)
        from_inside ? ++first : --last;
    stack_.frames.clear();
    stack_.places.clear();
    std::vector<std::string_view> build_ids;
    const auto add = [&](std::size_t from, std::size_t to) {
        for (; from < to; ++from) {
            const std::string& id = pieces_[from]->build_id;
            if (!id.empty() && std::find(build_ids.begin(), build_ids.end(), id) == build_ids.end())
                build_ids.push_back(id);
            add_element(stack_.frames, pieces_[from]->frames);
            add_element(stack_.places, pieces_[from]->places);
        }
    };
    const auto note = [&](const std::string& words) {
        add_element(stack_.frames, quoted(words));
        add_element(stack_.places, "null");
    };
    add(0, first);
    if (first < last) note("(" + std::to_string(last - first) + " frames left out)");
    add(last, pieces_.size());
    if (!is_whole) note("(callers unknown)");
    stack_.frames = "[" + stack_.frames + "]";
    if (build_ids.empty()) {
        stack_.places = "{}";
        return;
    }
    std::string ids;
    for (const std::string_view id : build_ids) add_element(ids, std::string(id));
    stack_.places = "{\"places\": [" + stack_.places + "], \"build_ids\": {" + ids + "}}";
}

const StackText& Unwinder::unwind(const StackCopy& copy) {
    if (texts_.size() > kMostTexts) texts_.clear();
    if (python_texts_.size() > kMostTexts) python_texts_.clear();
    const bool is_whole = walk(copy);
    collect(copy.python, is_whole);
    put_together(is_whole);
    return stack_;
}

}  // namespace rocpd
