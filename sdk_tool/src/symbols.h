// The names of functions in the file of a program or library, as its symbol table has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "modules.h"

namespace rocpd {

// A file from which sections of ELF can be read: a module's own, or one with its debugging information.
class ElfFile {
public:
    struct Section {
        std::string name;
        std::uint32_t type = 0, link = 0;
        std::uint64_t address = 0, offset = 0, size = 0;
    };

    // Opens the file; `is_open` says whether that is possible. `image`: where it lies in memory, for what has no file.
    explicit ElfFile(const std::string& path, std::uint64_t image = 0);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    bool is_open() const { return file_ >= 0 || image_ != 0; }
    int descriptor() const { return file_; }
    const std::vector<Section>& sections() const { return sections_; }
    const Section* section(std::string_view name) const;
    std::string bytes(std::uint64_t offset, std::uint64_t size) const;
    // The build id that it says to have.
    std::string build_id() const;

private:
    void read_sections();

    int file_ = -1;
    std::uint64_t image_;
    std::vector<Section> sections_;
};

// Returns the file with the debugging information of a module: its own, a separate one, or "" where there is none.
std::string file_with(const Module& module, std::string_view section);

class Symbols {
public:
    explicit Symbols(const Module& module);

    // Returns the name of the function at an address of the file, as the linker knows it; empty where there is none.
    std::string at(std::uint64_t address) const;

private:
    struct Symbol {
        std::uint64_t start;
        std::uint32_t size;
        std::uint32_t name;  // where it stands among the names
    };

    void read(const ElfFile& file, std::uint32_t type);

    std::string path_;
    std::uint64_t image_ = 0;
    std::uint64_t names_ = 0;       // where they stand in the file
    std::vector<Symbol> symbols_;  // by start
};

// Returns the name as a person writes it: demangled, without what compilers put behind the parts of a function.
std::string readable_name(const std::string& symbol);

}  // namespace rocpd
