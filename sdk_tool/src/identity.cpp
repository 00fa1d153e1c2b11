#include "identity.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "clock.h"
#include "environment.h"
#include "json.h"
#include "rank.h"

namespace rocpd {
namespace {

std::string file_text(const char* path) {
    std::string text;
    if (FILE* file = std::fopen(path, "re")) {
        std::array<char, 4096> buffer{};
        std::size_t got = 0;
        while ((got = std::fread(buffer.data(), 1, buffer.size(), file)) > 0) text.append(buffer.data(), got);
        std::fclose(file);
    }
    return text;
}

std::string trimmed(std::string text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text;
}

// 64-bit FNV-1a: every process of a machine finds the same node id.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::string environment_json(std::string_view variables, const Kept& kept) {
    std::string json = "{";
    std::set<std::string_view> seen;
    for (std::size_t at = 0, end = 0; at < variables.size(); at = end + 1) {
        end = std::min(variables.find('\0', at), variables.size());
        const std::string_view text = variables.substr(at, end - at);
        const auto equals = text.find('=');
        const std::string_view name = text.substr(0, equals);
        if (equals == std::string_view::npos || !seen.insert(name).second) continue;
        const std::string_view value = text.substr(equals + 1);
        if (json.size() > 1) json += ',';
        append_json(json, name, Stray::kExact);
        json += ':';
        append_json(json, kept.variable(name) ? value : shown_value(name, value), Stray::kExact);
    }
    return json + "}";
}

// Field 22 of /proc/self/stat counts clock ticks of CLOCK_BOOTTIME. The command in field 2 may hold anything.
std::uint64_t process_start() {
    const std::string stat = file_text("/proc/self/stat");
    const auto close = stat.rfind(')');
    if (close == std::string::npos) return now_ns();
    const char* at = stat.c_str() + close + 1;
    for (int field = 2; field < 21 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
    const long ticks = sysconf(_SC_CLK_TCK);
    if (at == nullptr || ticks <= 0) return now_ns();
    const std::uint64_t start = std::strtoull(at, nullptr, 10);
    return start * (1000000000u / static_cast<std::uint64_t>(ticks));
}

std::string argv_json(const std::string& words) {
    std::string json = "[";
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find('\0', at), words.size());
        if (json.size() > 1) json += ',';
        append_json(json, std::string_view(words).substr(at, end - at), Stray::kExact);
        at = end + 1;
    }
    return json + "]";
}

std::string working_folder() {
    char* here = getcwd(nullptr, 0);
    const std::string folder = here != nullptr ? here : "";
    std::free(here);
    return folder;
}

void append_number(std::string& json, const char* name, std::int64_t number) {
    if (number >= 0) json += std::string(",\"") + name + "\":" + std::to_string(number);
}

// Not empty, nor the word that systemd writes into an image.
bool is_machine_id(const std::string& text) { return !text.empty() && text != "uninitialized"; }

std::string without_dashes(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '-'), text.end());
    return text;
}

std::string process_json(const std::string& words, const Rank& rank, const std::string& boot) {
    std::string json = R"({"recorder":"librocpd-recorder","argv":)" + argv_json(words) + ",\"working_directory\":";
    append_json(json, working_folder(), Stray::kExact);
    if (rank.number < 0) json += ",\"mpi_rank\":null";  // whatever Slurm calls a launcher
    append_number(json, "mpi_rank", rank.number);
    append_number(json, "mpi_size", rank.count);
    append_number(json, "local_rank", rank.on_node);
    append_number(json, "local_size", rank.count_on_node);
    if (const auto space = pid_namespace()) append_number(json, "pid_namespace", static_cast<std::int64_t>(space));
    json += ",\"boot_id\":";
    append_json(json, boot);
    const auto since_boot = static_cast<std::int64_t>(now_ns());
    const auto real = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME));
    json += ",\"clock\":\"CLOCK_BOOTTIME\",\"realtime_offset_ns\":" + std::to_string(real - since_boot);
    return json + "}";
}

bool plain_word(std::string_view word) {
    if (word.empty()) return false;
    return std::all_of(word.begin(), word.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("@%+=:,./-_", c) != nullptr;
    });
}

}  // namespace

unsigned long long pid_namespace() {
    struct stat space {};
    return stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
}

std::string shell_line(const std::string& words) {
    std::string line;
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find('\0', at), words.size());
        const std::string_view word = std::string_view(words).substr(at, end - at);
        if (at > 0) line += ' ';
        if (plain_word(word)) {
            line += word;
        } else {
            line += '\'';
            for (const char c : word) {
                if (c == '\'')
                    line += "'\"'\"'";
                else
                    line += c;
            }
            line += '\'';
        }
        at = end + 1;
    }
    return line;
}

Identity identify_process(const Kept& kept) {
    Identity id;
    id.pid = getpid();
    id.ppid = getppid();
    id.init = now_ns();
    id.start = std::min(process_start(), id.init);
    const std::string given = file_text("/proc/self/cmdline");
    const std::string words = kept.all() ? given : shown_words(given);
    const std::string variables = environment();
    const Rank rank = starts_workers(given) ? Rank{} : rank_in(variables);
    id.rank = rank.number;
    id.command = readable(shell_line(words));
    id.environment = environment_json(variables, kept);
    const std::string boot = without_dashes(trimmed(file_text("/proc/sys/kernel/random/boot_id")));
    id.extdata = process_json(words, rank, boot);
    utsname name{};
    uname(&name);
    id.system = name.sysname;
    id.host = readable(name.nodename);
    id.release = name.release;
    id.version = name.version;
    id.hardware = name.machine;
    id.domain = name.domainname;
    id.machine_id = readable(trimmed(file_text("/etc/machine-id")));
    // Images of containers have none. Their host's start is the same for all containers of a machine.
    if (!is_machine_id(id.machine_id)) id.machine_id = boot;
    if (id.machine_id.empty()) id.machine_id = id.host;
    id.node_hash = static_cast<std::int64_t>(hash_of(id.machine_id) >> 1);
    id.node_id = id.node_hash & 0x7fffffff;
    return id;
}

}  // namespace rocpd
