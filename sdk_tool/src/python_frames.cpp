#include "python_frames.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "json.h"
#include "live_memory.h"

namespace rocpd::python {
namespace {

constexpr std::size_t kLongestPythonText = 4096;       // of a name or a path [characters]
constexpr std::size_t kLongestLineTable = 1 << 16;   // of line numbers [bytes]
constexpr std::size_t kMostFrameTexts = 1 << 15;

// Where things lie in the structures of a version [bytes].
struct Layout {
    unsigned minor;
    unsigned state_frame;        // of the thread's state: pointer to the innermost frame, or to what holds it
    int holder_frame;            // in what holds it, -1: nothing does
    unsigned frame_code, frame_instruction, frame_previous;
    unsigned frame_mark;         // says which frames one call of the loop runs
    unsigned code_first_line, code_instructions;
    unsigned text_ascii, text_other;
};

constexpr Layout kLayouts[] = {
    {11, 56, 8, 32, 56, 48, 68, 72, 184, 48, 72},
    {12, 56, 0, 0, 56, 8, 70, 68, 192, 40, 56},
    {13, 72, -1, 0, 56, 8, 70, 68, 200, 40, 56},
};
constexpr unsigned kFileOfCode = 112, kNameOfCode = 128, kLinesOfCode = 136;
constexpr std::uint8_t kOfLoop = 3;  // mark of a frame that stands for the call of the loop, since Python 3.12

std::atomic<const Layout*> g_layout{nullptr};
std::atomic<void* (*)()> g_state_of_this_thread{nullptr};
std::atomic<std::uint64_t> g_code_type{0};

template <typename T>
T part(const char* of, unsigned at) {
    T value;
    std::memcpy(&value, of + at, sizeof value);
    return value;
}

// The innermost frame of a state, 0 where there is none.
std::uint64_t innermost(const Layout& layout, std::uint64_t state) {
    std::uint64_t frame = 0;
    if (!read_live(state + layout.state_frame, frame)) return 0;
    if (layout.holder_frame >= 0 && !read_live(frame + static_cast<unsigned>(layout.holder_frame), frame)) return 0;
    return frame;
}

void append_utf8(std::string& out, std::uint32_t c) {
    if (c < 0x80) {
        out += static_cast<char>(c);
        return;
    }
    const unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static constexpr unsigned lead[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(lead[more] | c >> 6 * more);
    for (unsigned i = more; i-- > 0;) out += static_cast<char>(0x80u | (c >> 6 * i & 0x3fu));
}

// The text of a str, "?" where there is none any more.
std::string read_text(const Layout& layout, std::uint64_t object) {
    char head[40];
    if (!read_live(object, head)) return "?";
    const auto length = part<std::uint64_t>(head, 16);
    const auto state = part<std::uint32_t>(head, 32);
    const unsigned kind = state >> 2 & 7u;
    const bool is_compact = (state & 0x20u) != 0, is_ascii = (state & 0x40u) != 0;
    if (!is_compact || length > kLongestPythonText || (kind != 1 && kind != 2 && kind != 4)) return "?";
    std::string raw(length * kind, '\0');
    const std::uint64_t at = object + (is_ascii ? layout.text_ascii : layout.text_other);
    if (copy_live(at, raw.data(), raw.size()) != raw.size()) return "?";
    if (is_ascii) return raw;
    std::string text;
    for (std::size_t i = 0; i < length; ++i) {
        std::uint32_t c = 0;
        std::memcpy(&c, raw.data() + i * kind, kind);
        append_utf8(text, c);
    }
    return text;
}

// Finds the line of an instruction in the table that a code object has since Python 3.11: entries of one byte with the
// length in instructions, and numbers of six bits a byte.
class LineTable {
public:
    LineTable(const std::string& table, int first) : table_(table), line_(first) {}

    // `offset`: of the instruction in the code [bytes]. Returns 0 for one without a line.
    int line_at(std::uint64_t offset) {
        std::uint64_t until = 0;
        while (at_ < table_.size()) {
            const unsigned entry = byte();
            const unsigned kind = entry >> 3 & 15u;
            until += 2 * ((entry & 7u) + 1);
            int has_line = 1;
            if (kind == 15) {
                has_line = 0;
            } else if (kind == 14 || kind == 13) {
                line_ += signed_number();
                for (int i = 0; kind == 14 && i < 3; ++i) number();
            } else if (kind >= 10) {
                line_ += static_cast<int>(kind) - 10;
                at_ += 2;
            } else {
                at_ += 1;
            }
            if (offset < until) return has_line * line_;
        }
        return 0;
    }

private:
    unsigned byte() { return at_ < table_.size() ? static_cast<unsigned char>(table_[at_++]) : 0; }
    unsigned number() {
        unsigned value = 0, shift = 0;
        for (unsigned next = 0x40; (next & 0x40u) != 0 && shift < 30; shift += 6) {
            next = byte();
            value |= (next & 0x3fu) << shift;
        }
        return value;
    }
    int signed_number() {
        const unsigned value = number();
        return (value & 1u) != 0 ? -static_cast<int>(value >> 1) : static_cast<int>(value >> 1);
    }

    const std::string& table_;
    std::size_t at_ = 0;
    int line_;
};

// What tells a code object from another one at the same address.
struct CodeParts {
    std::uint64_t type = 0, file = 0, name = 0, lines = 0;
    int first_line = 0;

    bool operator==(const CodeParts& other) const {
        return type == other.type && file == other.file && name == other.name && lines == other.lines &&
               first_line == other.first_line;
    }
};

CodeParts parts_of(const Layout& layout, std::uint64_t code) {
    char head[kLinesOfCode + 8];
    if (!read_live(code, head)) return {};
    return {part<std::uint64_t>(head, 8), part<std::uint64_t>(head, kFileOfCode),
            part<std::uint64_t>(head, kNameOfCode), part<std::uint64_t>(head, kLinesOfCode),
            part<int>(head, layout.code_first_line)};
}

std::string describe_frame(const Layout& layout, const CodeParts& parts, std::uint64_t offset) {
    if (parts.type != g_code_type.load()) return "\"?\"";
    std::uint64_t size = 0;
    std::string table;
    if (read_live(parts.lines + 16, size) && size <= kLongestLineTable) {
        table.resize(size);
        for (std::size_t done = 0, got = 1; done < size && got > 0; done += got)
            got =
                copy_live(parts.lines + 32 + done, table.data() + done, std::min<std::size_t>(size - done, 8 * kPage));
    }
    const int line = LineTable(table, parts.first_line).line_at(offset);
    std::string json;
    append_json(json, read_text(layout, parts.file) + "(" + std::to_string(line > 0 ? line : parts.first_line) + "): " +
                          read_text(layout, parts.name));
    return json;
}

struct KnownFrame {
    CodeParts parts;
    std::string json;
};

}  // namespace

void find_frames() {
    if (g_layout.load() != nullptr) return;
    const auto version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "Py_GetVersion"));
    const auto state = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
    void* code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    if (version == nullptr || state == nullptr || code_type == nullptr) return;
    const std::string_view words = version();  // 3.11.7 (main, …
    if (words.substr(0, 2) != "3." || words.find("free-threading") != std::string_view::npos) return;
    const auto minor = static_cast<unsigned>(std::atoi(words.data() + 2));
    g_code_type.store(reinterpret_cast<std::uint64_t>(code_type));
    g_state_of_this_thread.store(state);
    for (const Layout& layout : kLayouts)
        if (layout.minor == minor) g_layout.store(&layout, std::memory_order_release);
}

std::uint64_t state_of_this_thread() {
    if (g_layout.load(std::memory_order_acquire) == nullptr) return 0;
    return reinterpret_cast<std::uint64_t>(g_state_of_this_thread.load()());
}

void copy_frames(std::uint64_t state, PythonFrames& frames) {
    frames.count = 0;
    frames.is_whole = true;
    const Layout* layout = g_layout.load(std::memory_order_acquire);
    if (layout == nullptr || state == 0) return;
    char copied[72];
    std::uint64_t frame = innermost(*layout, state);
    while (frame != 0) {
        if (frames.count == PythonFrames::kMost || !read_live(frame, copied)) {
            frames.is_whole = false;
            return;
        }
        const auto mark = part<std::uint8_t>(copied, layout->frame_mark);
        const bool stands_for_loop = layout->minor >= 12 && mark == kOfLoop;
        if (stands_for_loop && frames.count > 0) frames.frames[frames.count - 1].is_outermost = true;
        if (!stands_for_loop)
            frames.frames[frames.count++] = {part<std::uint64_t>(copied, layout->frame_code),
                                             part<std::uint64_t>(copied, layout->frame_instruction),
                                             layout->minor < 12 && mark != 0};
        frame = part<std::uint64_t>(copied, layout->frame_previous);
    }
}

const std::string& text_of_frame(const PythonFrame& frame) {
    static auto& known_frames = *new std::unordered_map<std::uint64_t, KnownFrame>;  // by instruction
    static const std::string unknown = "\"?\"";
    const Layout* layout = g_layout.load();
    if (layout == nullptr) return unknown;
    if (known_frames.size() > kMostFrameTexts) known_frames.clear();
    const CodeParts parts = parts_of(*layout, frame.code);
    KnownFrame& known = known_frames[frame.instruction];
    // What is freed by now, as a module's code is when it has run, was what is known of it.
    if (known.json.empty() || (parts.type == g_code_type.load() && !(known.parts == parts))) {
        const std::uint64_t start = frame.code + layout->code_instructions;
        known = {parts, describe_frame(*layout, parts, frame.instruction >= start ? frame.instruction - start : 0)};
    }
    return known.json;
}

}  // namespace rocpd::python
