#include "debug_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "libdw.h"
#include "symbols.h"

namespace rocpd {
namespace {

constexpr std::uint64_t kLargestInformation = 1u << 30;  // of larger files lines are not read: memory [bytes]

std::string text_or_nothing(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

struct DebugLines::Open {
    // Addresses, and the unit of compilation that they are of.
    struct Stretch {
        std::uint64_t start, end, unit;
    };

    explicit Open(const std::string& path) {
        const ElfFile file(path);
        const ElfFile::Section* information = file.is_open() ? file.section(".debug_info") : nullptr;
        if (information == nullptr || information->size > kLargestInformation) return;
        elf = libdw.elf_begin(file.descriptor(), dw::kMap, nullptr);
        dwarf = elf != nullptr ? libdw.begin(elf, dw::kDwarf, nullptr) : nullptr;
        if (dwarf == nullptr) return;
        libdw.elf_control(elf, dw::kFileDone);  // the program may close its descriptors, whosever they are
        read_units();
    }
    ~Open() {
        if (dwarf != nullptr) libdw.end(dwarf);
        if (elf != nullptr) libdw.elf_end(elf);
    }

    // Not by .debug_aranges, which only some compilers write.
    void read_units() {
        std::uint64_t offset = 0, next = 0, abbreviations = 0;
        std::size_t header = 0;
        std::uint8_t address_size = 0, offset_size = 0;
        while (libdw.next_unit(dwarf, offset, &next, &header, &abbreviations, &address_size, &offset_size) == 0) {
            dw::Die die{};
            if (libdw.die_at(dwarf, offset + header, &die) != nullptr) {
                std::uint64_t base = 0, start = 0, end = 0;
                for (std::ptrdiff_t at = 0; (at = libdw.ranges(&die, at, &base, &start, &end)) > 0;)
                    stretches.push_back({start, end, offset + header});
            }
            offset = next;
        }
        std::sort(stretches.begin(), stretches.end(),
                  [](const Stretch& a, const Stretch& b) { return a.start < b.start; });
    }

    bool unit_at(std::uint64_t address, dw::Die& unit) {
        auto after = std::upper_bound(stretches.begin(), stretches.end(), address,
                                      [](std::uint64_t a, const Stretch& each) { return a < each.start; });
        if (after == stretches.begin() || address >= (--after)->end) return false;
        return libdw.die_at(dwarf, after->unit, &unit) != nullptr;
    }

    std::string name_of(dw::Die& die) {
        dw::Attribute attribute{};
        for (const unsigned name : {dw::kLinkageName, dw::kMipsLinkageName})
            if (dw::Attribute* found = libdw.attribute(&die, name, &attribute))
                if (const char* symbol = libdw.text(found)) return readable_name(symbol);
        return text_or_nothing(libdw.name(&die));
    }

    // Where an inlined function was called from.
    void call_of(dw::Die& die, dw::Files* files, std::size_t count, SourceFrame& frame) {
        dw::Attribute attribute{};
        std::uint64_t file_number = 0, line = 0;
        if (dw::Attribute* found = libdw.attribute(&die, dw::kCallFile, &attribute)) libdw.number(found, &file_number);
        if (dw::Attribute* found = libdw.attribute(&die, dw::kCallLine, &attribute)) libdw.number(found, &line);
        frame.file = file_number < count ? text_or_nothing(libdw.file(files, file_number, nullptr, nullptr)) : "";
        frame.line = static_cast<int>(line);
    }

    std::vector<SourceFrame> frames_at(std::uint64_t address);

    const dw::Interface& libdw = *dw::interface();
    dw::Elf* elf = nullptr;
    dw::Dwarf* dwarf = nullptr;
    std::vector<Stretch> stretches;
};

std::vector<SourceFrame> DebugLines::Open::frames_at(std::uint64_t address) {
    dw::Die unit{};
    if (dwarf == nullptr || !unit_at(address, unit)) return {};
    SourceFrame frame;
    if (dw::Line* line = libdw.line_at(&unit, address)) {
        frame.file = text_or_nothing(libdw.file_of(line, nullptr, nullptr));
        libdw.number_of(line, &frame.line);
    }
    // First the scopes down to the innermost, then those that it physically lies in: the first ones name inlined
    // functions where they were written.
    dw::Die *scopes = nullptr, *around = nullptr;
    int count = libdw.scopes(&unit, address, &scopes);
    if (count > 0) {
        const int physical = libdw.scopes_of(&scopes[0], &around);
        std::free(scopes);
        scopes = around;
        count = physical;
    }
    dw::Files* files = nullptr;
    std::size_t known = 0;
    if (libdw.files(&unit, &files, &known) != 0) known = 0;
    std::vector<SourceFrame> frames;
    for (int i = 0; i < count; ++i) {
        const auto tag = static_cast<unsigned>(libdw.tag(&scopes[i]));
        if (tag != dw::kInlined && tag != dw::kSubprogram) continue;
        frame.function = name_of(scopes[i]);
        frame.is_inlined = tag == dw::kInlined;
        frames.push_back(frame);
        if (tag == dw::kSubprogram) break;
        call_of(scopes[i], files, known, frame);
    }
    std::free(scopes);
    if (frames.empty() && !frame.file.empty()) frames.push_back(frame);
    return frames;
}

bool DebugLines::is_possible() { return dw::interface() != nullptr; }

DebugLines::DebugLines(const std::string& path) : open_(is_possible() ? new Open(path) : nullptr) {}

DebugLines::~DebugLines() = default;

std::vector<SourceFrame> DebugLines::at(std::uint64_t address) {
    return open_ != nullptr ? open_->frames_at(address) : std::vector<SourceFrame>{};
}

}  // namespace rocpd
