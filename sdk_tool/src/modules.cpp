#include "modules.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "live_memory.h"

namespace rocpd {
namespace {

constexpr std::size_t kMostHeaders = 64;    // of segments
constexpr std::size_t kLargestNotes = 4096;

struct Mapping {
    std::uint64_t start = 0, end = 0, offset = 0;
    unsigned major = 0, minor = 0;
    unsigned long inode = 0;
    std::string path;
};

// The whole of a file in /proc, which has no size.
std::string text_of_file(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::string text;
    for (std::size_t size = 0;;) {
        text.resize(size + (64 << 10));
        const ssize_t got = ::read(file, text.data() + size, text.size() - size);
        if (got > 0) size += static_cast<std::size_t>(got);
        if (got > 0) continue;
        text.resize(size);
        break;
    }
    close(file);
    return text;
}

bool read_mapping(const char* line, Mapping& mapping) {
    int at = 0;
    if (std::sscanf(line, "%lx-%lx %*4s %lx %x:%x %lu %n", &mapping.start, &mapping.end, &mapping.offset,
                    &mapping.major, &mapping.minor, &mapping.inode, &at) < 6)
        return false;
    mapping.path = line + at;
    return true;
}

// The build id among the notes of a segment.
std::string build_id_in(std::uint64_t address, std::uint64_t size) {
    char notes[kLargestNotes];
    const std::size_t got = copy_live(address, notes, std::min<std::uint64_t>(size, sizeof notes));
    for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= got;) {
        Elf64_Nhdr head;
        std::memcpy(&head, notes + at, sizeof head);
        const std::size_t name = at + sizeof head, id = name + (head.n_namesz + 3u) / 4 * 4;
        if (id > got || head.n_descsz > got - id) return {};
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
            std::string text;
            for (std::size_t i = 0; i < head.n_descsz; ++i) {
                char byte[3];
                std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(notes[id + i]));
                text += byte;
            }
            return text;
        }
        at = id + (head.n_descsz + 3u) / 4 * 4;
    }
    return {};
}

// Describes the module whose file begins at a mapping; false where there is none.
bool describe(const Mapping& first, Module& module) {
    Elf64_Ehdr head;
    if (!read_live(first.start, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    Elf64_Phdr headers[kMostHeaders];
    const std::size_t count = std::min<std::size_t>(head.e_phnum, kMostHeaders);
    if (copy_live(first.start + head.e_phoff, headers, count * sizeof headers[0]) != count * sizeof headers[0])
        return false;
    std::uint64_t end = 0;
    bool found = false;
    for (std::size_t i = 0; i < count; ++i) {
        const Elf64_Phdr& each = headers[i];
        if (each.p_type != PT_LOAD) continue;
        if (!found) module.bias = first.start - (each.p_vaddr - each.p_offset);
        found = true;
        end = std::max<std::uint64_t>(end, each.p_vaddr + each.p_memsz);
    }
    module.start = first.start;
    module.end = module.bias + end;
    for (std::size_t i = 0; i < count; ++i) {
        const Elf64_Phdr& each = headers[i];
        if (each.p_type == PT_GNU_EH_FRAME) module.unwinding = module.bias + each.p_vaddr;
        if (each.p_type == PT_NOTE && module.build_id.empty())
            module.build_id = build_id_in(module.bias + each.p_vaddr, each.p_filesz);
    }
    module.path = first.path;
    module.name = first.path.substr(first.path.rfind('/') + 1);
    module.device = makedev(first.major, first.minor);
    module.inode = first.inode;
    return found;
}

bool same(const Module& module, const Mapping& first) {
    return module.start == first.start && module.path == first.path && module.inode == first.inode &&
           module.device == makedev(first.major, first.minor);
}

}  // namespace

bool Modules::read() {
    const std::string text = text_of_file("/proc/self/maps");
    std::vector<std::shared_ptr<const Module>> found;
    std::size_t kept = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        at = end + 1;
        Mapping mapping;
        if (!read_mapping(line.c_str(), mapping) || mapping.offset != 0) continue;
        if (mapping.inode == 0 && mapping.path != "[vdso]") continue;
        if (!found.empty() && mapping.start < found.back()->end) continue;  // further parts of the last one
        const auto known = std::find_if(modules_.begin(), modules_.end(),
                                        [&](const auto& each) { return same(*each, mapping); });
        auto module = std::make_shared<Module>();
        if (known != modules_.end()) {
            found.push_back(*known);
            ++kept;
        } else if (describe(mapping, *module)) {
            found.push_back(std::move(module));
        }
    }
    const bool changed = kept != modules_.size();
    modules_ = std::move(found);
    return changed;
}

const Module* Modules::at(std::uint64_t address) const {
    const auto after = std::upper_bound(modules_.begin(), modules_.end(), address,
                                        [](std::uint64_t a, const auto& module) { return a < module->start; });
    if (after == modules_.begin()) return nullptr;
    const Module* module = std::prev(after)->get();
    return address < module->end ? module : nullptr;
}

}  // namespace rocpd
