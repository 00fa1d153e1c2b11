#include "unwinder.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "clock.h"
#include "code_rules.h"
#include "entry.h"
#include "json.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kUsually = 250'000'000, kMissing = 20'000'000;  // between looks at the libraries [ns]
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

// Looks at the libraries of the process, unless that was done some time ago [ns], or so many times as long ago as it
// took: of a program with thousands of mappings rarely.
bool Unwinder::look_around(std::uint64_t pause, std::uint64_t times) {
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (looked_ != 0 && now - looked_ < std::max(pause, times * took_)) return false;
    const std::uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    looked_ = now;
    if (modules_.read()) {
        rules_.clear();
        texts_.clear();
        names_.clear();
    }
    python::find_frames();
    took_ = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    return true;
}

// `back`: how far the instruction lies before where the program goes on.
const cfi::Rule* Unwinder::rule_at(std::uint64_t instruction, std::uint64_t back) {
    const Module* module = modules_.at(instruction);
    if (module == nullptr) {  // made by the program itself: other code may stand there next time
        is_missing_ = true;
        own_code_ = cfi::Rule{};
        return cfi::follow_code(instruction + back, own_code_) ? &own_code_ : nullptr;
    }
    if (rules_.size() > kMostRules) rules_.clear();
    const auto [known, is_new] = rules_.try_emplace(instruction);
    cfi::Rule& rule = known->second;
    if (is_new && !(module->unwinding != 0 && cfi::find_rule(module->unwinding, instruction, rule))) {
        rule = cfi::Rule{};
        cfi::follow_code(instruction + back, rule);
    }
    return rule.is_known ? &rule : nullptr;
}

// Turns the registers of a function into those of its caller. Returns false where that cannot be known.
bool Unwinder::step(const cfi::ReadStack& stack, std::uint64_t& back, cfi::Registers& registers) {
    const cfi::Rule* rule = rule_at(registers.value[cfi::kReturn] - back, back);
    const bool is_told = rule != nullptr && !rule->is_inferred;
    if (is_told && rule->places[cfi::kReturn].kind == cfi::Place::kUndefined) {
        registers.set(cfi::kReturn, 0);  // the outermost
        return true;
    }
    const bool is_signal_frame = rule != nullptr && rule->is_signal_frame;
    const bool has_frame = back > 0;  // a function that called another one has set its frame pointer, if it keeps one
    const std::uint64_t before = registers.value[cfi::kStackPointer];
    if (!is_told) inferred_ = std::min(inferred_, instructions_.size() - 1);
    if (rule != nullptr ? !cfi::step(*rule, stack, registers)
                        : !has_frame || !cfi::step_by_frame_pointer(stack, registers))
        return false;
    if (!registers.has(cfi::kReturn)) return false;
    if (!is_signal_frame && registers.value[cfi::kStackPointer] <= before) return false;
    back = is_signal_frame ? 0 : 1;  // a call may be the last instruction of its function
    return is_told || cfi::follows_call(registers.value[cfi::kReturn]);
}

// Collects the instructions from the innermost function to the outermost. Returns whether that was reached.
bool Unwinder::follow(const StackCopy& copy) {
    const cfi::ReadStack stack = [&copy](std::uint64_t address, std::uint64_t& value) {
        const std::uint64_t at = address - copy.start;
        if (address < copy.start || at > copy.size || copy.size - at < sizeof value) return false;
        std::memcpy(&value, copy.bytes + at, sizeof value);
        return true;
    };
    cfi::Registers registers = copy.registers;
    for (std::uint64_t back = 0; instructions_.size() < kDeepestStack;) {
        if (registers.value[cfi::kReturn] == 0) return true;
        instructions_.push_back(registers.value[cfi::kReturn] - back);
        if (!step(stack, back, registers)) return false;
    }
    return false;
}

// A caller that no table tells is one only where the outermost function is reached through it.
bool Unwinder::walk(const StackCopy& copy) {
    instructions_.clear();
    inferred_ = kDeepestStack;
    const bool is_whole = follow(copy);
    if (!is_whole && inferred_ < instructions_.size()) instructions_.resize(inferred_ + 1);
    if (!is_whole) inferred_ = kDeepestStack;
    return is_whole;
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
        const auto rule = rules_.find(instruction);
        const bool has_start = rule != rules_.end() && rule->second.function != 0;
        own.function = module->name + "+" + hexadecimal(has_start ? rule->second.function - module->bias : address);
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
    put_facts(build_ids);
}

// In `places` are those of the frames.
void Unwinder::put_facts(const std::vector<std::string_view>& build_ids) {
    std::string facts;
    if (!build_ids.empty()) {
        std::string ids;
        for (const std::string_view id : build_ids) add_element(ids, std::string(id));
        facts = "\"places\": [" + stack_.places + "], \"build_ids\": {" + ids + "}";
    }
    if (inferred_ < instructions_.size())
        add_element(facts, "\"inferred\": [" + text_at(instructions_[inferred_]).frames + "]");
    stack_.places = "{" + facts + "}";
}

const StackText& Unwinder::unwind(const StackCopy& copy) {
    if (texts_.size() > kMostTexts) texts_.clear();
    if (python_texts_.size() > kMostTexts) python_texts_.clear();
    look_around(kUsually, 400);
    is_missing_ = false;
    bool is_whole = walk(copy);
    if (is_missing_ && look_around(kMissing, 100)) is_whole = walk(copy);
    collect(copy.python, is_whole);
    put_together(is_whole);
    return stack_;
}

}  // namespace rocpd
