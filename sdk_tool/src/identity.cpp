#include "identity.h"

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
#include "json.h"

extern char** environ;

namespace rocpd {
namespace {

constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PALS_RANKID",
                                       "FLUX_TASK_RANK"};
constexpr std::array kSizeVariables = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "PALS_SIZE",
                                       "FLUX_JOB_SIZE"};
constexpr std::array kSecretWords = {"TOKEN", "PASS",   "_PWD",   "SECRET", "KEY",     "CREDENTIAL", "PRIVATE",
                                     "AUTH",  "COOKIE", "JWT",    "BEARER", "SESSION", "DSN"};
constexpr std::array kSecretParts = {"PAT"};  // between underscores only: PATH is none
constexpr std::array kSecretSettings = {"password=", "passwd=", "pwd=", "passphrase=", "secret=", "token=", "key=",
                                        "bearer "};

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

int number_of(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return -1;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    return *end == '\0' && value >= 0 && value < 1 << 30 ? static_cast<int>(value) : -1;
}

int first_number(const char* const* names, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        if (const int value = number_of(names[i]); value >= 0) return value;
    return -1;
}

// Whether a URL holds a login, as of a proxy or a repository: scheme://user:password@host, scheme://token@host.
bool holds_login(std::string_view value) {
    const auto scheme = value.find("://");
    if (scheme == std::string_view::npos) return false;
    const std::string_view rest = value.substr(scheme + 3);
    const auto at = rest.find('@');
    if (at == std::string_view::npos) return false;
    // A password may hold a slash, a token does not.
    return rest.find(':') < at || rest.find('/') > at || holds_login(rest);
}

// Whether a value holds a setting with a password, as data sources and connection strings do: Server=x;Password=y.
bool holds_setting(std::string_view value) {
    std::string lower(value);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return std::any_of(kSecretSettings.begin(), kSecretSettings.end(),
                       [&](const char* setting) { return lower.find(setting) != std::string::npos; });
}

std::string environment_json(bool keep) {
    std::string json = "{";
    std::set<std::string> seen;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        if (equals == std::string_view::npos || !seen.emplace(text.substr(0, equals)).second) continue;
        const std::string name(text.substr(0, equals));
        const std::string_view value = text.substr(equals + 1);
        const bool secret = looks_secret(name) || holds_login(value) || holds_setting(value);
        const bool masked = !keep && !value.empty() && secret;
        if (json.size() > 1) json += ',';
        append_json(json, name, Stray::kExact);
        json += ':';
        append_json(json, masked ? "***" : value, Stray::kExact);
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

std::string process_json(const std::string& words, int rank) {
    std::string json = R"({"recorder":"librocpd-recorder","argv":)" + argv_json(words) + ",\"working_directory\":";
    append_json(json, working_folder(), Stray::kExact);
    if (rank >= 0) json += ",\"mpi_rank\":" + std::to_string(rank);
    if (const int size = first_number(kSizeVariables.data(), kSizeVariables.size()); rank >= 0 && size > 0)
        json += ",\"mpi_size\":" + std::to_string(size);
    const auto boot = static_cast<std::int64_t>(now_ns());
    const auto real = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME));
    json += ",\"clock\":\"CLOCK_BOOTTIME\",\"realtime_offset_ns\":" + std::to_string(real - boot);
    return json + "}";
}

bool plain_word(std::string_view word) {
    if (word.empty()) return false;
    return std::all_of(word.begin(), word.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("@%+=:,./-_", c) != nullptr;
    });
}

}  // namespace

bool looks_secret(const std::string& name) {
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const std::string parts = "_" + upper + "_";
    return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                       [&](const char* word) { return upper.find(word) != std::string::npos; }) ||
           std::any_of(kSecretParts.begin(), kSecretParts.end(), [&](const char* part) {
               return parts.find(std::string("_") + part + "_") != std::string::npos;
           });
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

Identity identify_process(bool keep_env) {
    Identity id;
    id.pid = getpid();
    id.ppid = getppid();
    id.init = now_ns();
    id.start = std::min(process_start(), id.init);
    const std::string words = file_text("/proc/self/cmdline");
    id.rank = first_number(kRankVariables.data(), kRankVariables.size());
    id.command = readable(shell_line(words));
    id.environment = environment_json(keep_env);
    id.extdata = process_json(words, id.rank);
    utsname name{};
    uname(&name);
    id.system = name.sysname;
    id.host = readable(name.nodename);
    id.release = name.release;
    id.version = name.version;
    id.hardware = name.machine;
    id.domain = name.domainname;
    id.machine_id = readable(trimmed(file_text("/etc/machine-id")));
    if (id.machine_id.empty()) id.machine_id = id.host;  // minimal containers have none
    id.node_hash = static_cast<std::int64_t>(hash_of(id.machine_id) >> 1);
    id.node_id = id.node_hash & 0x7fffffff;
    return id;
}

}  // namespace rocpd
