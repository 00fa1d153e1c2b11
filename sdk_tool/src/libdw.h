// The part of elfutils' C interface that is used; its library is looked up where it is installed, and needs no headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocpd::dw {

struct Elf;
struct Dwarf;
struct Lines;
struct Line;
struct Files;

struct Die {
    void* address;
    void* unit;
    void* abbreviation;
    long padding;
};
struct Attribute {
    unsigned code, form;
    unsigned char* value;
    void* unit;
};

constexpr int kMap = 8;           // ELF_C_READ_MMAP
constexpr int kFileDone = 6;      // ELF_C_FDDONE: the file is mapped, its descriptor is needed no more
constexpr int kDwarf = 0;         // DWARF_C_READ
constexpr unsigned kVersion = 1;  // EV_CURRENT

enum : unsigned {
    kInlined = 0x1d, kSubprogram = 0x2e,  // tags
    kCallFile = 0x58, kCallLine = 0x59, kLinkageName = 0x6e, kMipsLinkageName = 0x2007,  // attributes
};

struct Interface {
    unsigned (*elf_version)(unsigned);
    Elf* (*elf_begin)(int file, int how, Elf* reference);
    int (*elf_control)(Elf*, int what);
    int (*elf_end)(Elf*);
    Dwarf* (*begin)(Elf*, int how, void* group);
    int (*end)(Dwarf*);
    int (*next_unit)(Dwarf*, std::uint64_t offset, std::uint64_t* next, std::size_t* header,
                     std::uint64_t* abbreviations, std::uint8_t* address_size, std::uint8_t* offset_size);
    Die* (*die_at)(Dwarf*, std::uint64_t offset, Die* result);
    std::ptrdiff_t (*ranges)(Die*, std::ptrdiff_t offset, std::uint64_t* base, std::uint64_t* start,
                             std::uint64_t* end);
    Line* (*line_at)(Die* unit, std::uint64_t address);
    const char* (*file_of)(Line*, std::uint64_t* mtime, std::uint64_t* size);
    int (*number_of)(Line*, int* number);
    int (*scopes)(Die* unit, std::uint64_t address, Die** scopes);
    int (*scopes_of)(Die* die, Die** scopes);
    int (*tag)(Die*);
    Attribute* (*attribute)(Die*, unsigned name, Attribute* result);  // also of the function that it is an instance of
    const char* (*text)(Attribute*);
    int (*number)(Attribute*, std::uint64_t* value);
    const char* (*name)(Die*);
    int (*files)(Die* unit, Files** files, std::size_t* count);
    const char* (*file)(Files*, std::size_t index, std::uint64_t* mtime, std::uint64_t* size);
};

// Returns the functions of the library, nullptr where there is none. Loads it on first use.
const Interface* interface();

}  // namespace rocpd::dw
