// The programs and libraries in this process: where each lies, and which file it is of.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rocpd {

// A program, a library or the kernel's vdso. Described by what is in memory; its file may be gone.
struct Module {
    std::string path;
    std::string name;            // the last part of the path
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t start = 0;     // of the memory that it takes
    std::uint64_t end = 0;
    std::uint64_t bias = 0;      // address in memory less address in the file
    std::uint64_t unwinding = 0; // address of .eh_frame_hdr, 0 where there is none
    std::string build_id;        // hexadecimal, empty where there is none
};

class Modules {
public:
    // Looks at the process again. Returns whether anything is gone or other than before: what was known by address is
    // known no more.
    bool read();
    // Returns the module that holds an address, nullptr where there is none.
    const Module* at(std::uint64_t address) const;

private:
    std::vector<std::shared_ptr<const Module>> modules_;  // by start
};

}  // namespace rocpd
