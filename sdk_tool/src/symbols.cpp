#include "symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "live_memory.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kLargestTable = 1 << 28;  // of symbols [bytes]
constexpr std::size_t kLongestName = 4096;

bool is_file_of(const std::string& path, const Module& module) {
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 && facts.st_ino == module.inode && facts.st_dev == module.device;
}

// Whether a file has a section with something in it, and is of the module's build.
bool has(const std::string& path, const Module& module, std::string_view name) {
    const ElfFile file(path);
    const ElfFile::Section* section = file.is_open() ? file.section(name) : nullptr;
    if (section == nullptr || section->type == SHT_NOBITS) return false;
    return is_file_of(path, module) || (!module.build_id.empty() && file.build_id() == module.build_id);
}

}  // namespace

ElfFile::ElfFile(const std::string& path, std::uint64_t image) : image_(image) {
    if (image == 0) file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts {};
    if (file_ >= 0 && (fstat(file_, &facts) != 0 || !S_ISREG(facts.st_mode))) {
        close(file_);
        file_ = -1;
    }
    if (is_open()) read_sections();
}

ElfFile::~ElfFile() {
    if (file_ >= 0) close(file_);
}

std::string ElfFile::bytes(std::uint64_t offset, std::uint64_t size) const {
    if (size > kLargestTable) return {};
    std::string text(size, '\0');
    std::size_t done = image_ != 0 ? copy_live(image_ + offset, text.data(), size) : 0;
    while (image_ == 0 && done < size) {
        const ssize_t got = pread(file_, text.data() + done, size - done, static_cast<off_t>(offset + done));
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
}

void ElfFile::read_sections() {
    Elf64_Ehdr head;
    if (const std::string text = bytes(0, sizeof head); text.size() == sizeof head)
        std::memcpy(&head, text.data(), sizeof head);
    else
        return;
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return;
    if (head.e_shentsize != sizeof(Elf64_Shdr)) return;
    const std::string table = bytes(head.e_shoff, std::uint64_t{head.e_shnum} * sizeof(Elf64_Shdr));
    std::vector<Elf64_Shdr> headers(table.size() / sizeof(Elf64_Shdr));
    if (headers.empty() || head.e_shstrndx >= headers.size()) return;
    std::memcpy(headers.data(), table.data(), headers.size() * sizeof headers[0]);
    const Elf64_Shdr& names_of = headers[head.e_shstrndx];
    const std::string names = bytes(names_of.sh_offset, names_of.sh_size);
    for (const Elf64_Shdr& each : headers) {
        const char* name = each.sh_name < names.size() ? names.c_str() + each.sh_name : "";
        sections_.push_back({name, each.sh_type, each.sh_link, each.sh_addr, each.sh_offset, each.sh_size});
    }
}

const ElfFile::Section* ElfFile::section(std::string_view name) const {
    for (const Section& each : sections_)
        if (each.name == name) return &each;
    return nullptr;
}

std::string ElfFile::build_id() const {
    const Section* section = this->section(".note.gnu.build-id");
    const std::string note =
        section != nullptr ? bytes(section->offset, std::min<std::uint64_t>(section->size, 64)) : "";
    constexpr std::size_t kHead = sizeof(Elf64_Nhdr) + 4;
    std::string text;
    for (std::size_t i = kHead; i < note.size(); ++i) {
        const auto byte = static_cast<unsigned char>(note[i]);
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

std::string file_with(const Module& module, std::string_view section) {
    if (has(module.path, module, section)) return module.path;
    if (module.build_id.size() > 2) {
        const std::string id = module.build_id;
        const std::string path = "/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
        if (has(path, module, section)) return path;
    }
    const ElfFile file(module.path);
    const ElfFile::Section* link = file.is_open() ? file.section(".gnu_debuglink") : nullptr;
    if (link == nullptr) return {};
    const std::string name = file.bytes(link->offset, std::min<std::uint64_t>(link->size, kLongestName)).c_str();
    const std::string folder = module.path.substr(0, module.path.rfind('/') + 1);
    for (const std::string& path : {folder + name, folder + ".debug/" + name, "/usr/lib/debug" + folder + name})
        if (path != module.path && has(path, module, section)) return path;
    return {};
}

Symbols::Symbols(const Module& module) : path_(file_with(module, ".symtab")) {
    std::uint32_t type = SHT_SYMTAB;
    if (path_.empty() && (module.inode == 0 || is_file_of(module.path, module))) {
        path_ = module.path;
        image_ = module.inode == 0 ? module.start : 0;
        type = SHT_DYNSYM;
    }
    if (path_.empty()) return;
    const ElfFile file(path_, image_);
    read(file, type);
}

void Symbols::read(const ElfFile& file, std::uint32_t type) {
    for (const ElfFile::Section& section : file.sections()) {
        if (section.type != type || section.link >= file.sections().size()) continue;
        names_ = file.sections()[section.link].offset;
        const std::string table = file.bytes(section.offset, section.size);
        for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            std::memcpy(&symbol, table.data() + at, sizeof symbol);
            const unsigned kind = ELF64_ST_TYPE(symbol.st_info);
            const bool is_code =
                kind == STT_FUNC || kind == STT_GNU_IFUNC || (kind == STT_NOTYPE && symbol.st_size > 0);
            if (!is_code || symbol.st_shndx == SHN_UNDEF || symbol.st_name == 0) continue;
            const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(symbol.st_size, UINT32_MAX));
            symbols_.push_back({symbol.st_value, size, symbol.st_name});
        }
        break;
    }
    symbols_.shrink_to_fit();
    std::stable_sort(symbols_.begin(), symbols_.end(),
                     [](const Symbol& a, const Symbol& b) { return a.start < b.start; });
}

std::string Symbols::at(std::uint64_t address) const {
    auto after = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                                  [](std::uint64_t a, const Symbol& symbol) { return a < symbol.start; });
    const Symbol* found = nullptr;
    // Of several names of one function the first; a function without size reaches to the next one.
    for (int looks = 0; after != symbols_.begin() && looks < 16; ++looks) {
        const Symbol& symbol = *--after;
        if (found != nullptr && symbol.start != found->start) break;
        if (address - symbol.start < symbol.size || symbol.size == 0) found = &symbol;
    }
    if (found == nullptr) return {};
    const ElfFile file(path_, image_);
    return file.is_open() ? file.bytes(names_ + found->name, kLongestName).c_str() : "";
}

std::string readable_name(const std::string& symbol) {
    static constexpr std::string_view parts[] = {".cold", ".part.", ".constprop.", ".isra.", ".llvm.", ".lto_priv."};
    std::size_t end = symbol.size();
    for (const std::string_view part : parts) end = std::min(end, symbol.find(part, 1));
    const std::string whole = symbol.substr(0, end);
    int status = 0;
    char* text = abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &status);
    std::string name = status == 0 && text != nullptr ? text : whole;
    std::free(text);
    return name;
}

}  // namespace rocpd
