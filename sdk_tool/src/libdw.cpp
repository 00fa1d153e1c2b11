#include "libdw.h"

#include <dlfcn.h>

#include "library.h"

namespace rocpd::dw {
namespace {

const Interface* load() {
    void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    // Its functions on ELF files are of the library that it needs: found among its own.
    if (library == nullptr) return nullptr;
    static Interface found{};
    const bool is_whole =
        find_function(library, found.elf_version, "elf_version") &&
        find_function(library, found.elf_begin, "elf_begin") &&
        find_function(library, found.elf_control, "elf_cntl") && find_function(library, found.elf_end, "elf_end") &&
        find_function(library, found.begin, "dwarf_begin_elf") && find_function(library, found.end, "dwarf_end") &&
        find_function(library, found.next_unit, "dwarf_nextcu") &&
        find_function(library, found.die_at, "dwarf_offdie") &&
        find_function(library, found.ranges, "dwarf_ranges") &&
        find_function(library, found.line_at, "dwarf_getsrc_die") &&
        find_function(library, found.file_of, "dwarf_linesrc") &&
        find_function(library, found.number_of, "dwarf_lineno") &&
        find_function(library, found.scopes, "dwarf_getscopes") &&
        find_function(library, found.scopes_of, "dwarf_getscopes_die") &&
        find_function(library, found.tag, "dwarf_tag") &&
        find_function(library, found.attribute, "dwarf_attr_integrate") &&
        find_function(library, found.text, "dwarf_formstring") &&
        find_function(library, found.number, "dwarf_formudata") &&
        find_function(library, found.name, "dwarf_diename") &&
        find_function(library, found.files, "dwarf_getsrcfiles") &&
        find_function(library, found.file, "dwarf_filesrc");
    if (is_whole) found.elf_version(kVersion);
    return is_whole ? &found : nullptr;
}

}  // namespace

const Interface* interface() {
    static const Interface* const only = load();
    return only;
}

}  // namespace rocpd::dw
