// Which source line an instruction is of, and which functions were inlined there: DWARF, read by elfutils' libdw where
// that is installed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rocpd {

// A function that an instruction is of, the innermost first.
struct SourceFrame {
    std::string function;  // empty where it is the one that the symbol table names
    std::string file;
    int line = 0;
    bool is_inlined = false;
};

class DebugLines {
public:
    // Whether there is a libdw in this process or installed. Loads it: to be called where a library may be loaded.
    static bool is_possible();

    // `path` holds the debugging information.
    explicit DebugLines(const std::string& path);
    ~DebugLines();

    // Returns what is known of an address of the file: nothing, or one frame and those it is inlined into.
    std::vector<SourceFrame> at(std::uint64_t address);

private:
    struct Open;
    std::unique_ptr<Open> open_;
};

}  // namespace rocpd
