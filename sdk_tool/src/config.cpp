#include "config.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "say.h"

namespace rocpd {
namespace {

const char* variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

double number(const char* name, double otherwise, double least, double most) {
    const char* text = variable(name);
    if (text == nullptr) return otherwise;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !std::isfinite(value)) {
        say(std::string(name) + "=" + text + " is not a number; " + std::to_string(static_cast<long>(otherwise)) +
            " is used");
        return otherwise;
    }
    return std::min(std::max(value, least), most);
}

// Whether the variable says yes; `otherwise` when it is not set.
bool flag(const char* name, bool otherwise) {
    const char* value = variable(name);
    if (value == nullptr) return otherwise;
    return std::strcmp(value, "0") != 0 && std::strcmp(value, "off") != 0 && std::strcmp(value, "false") != 0 &&
           std::strcmp(value, "no") != 0;
}

std::string absolute(const std::string& path) {
    if (!path.empty() && path[0] == '/') return path;
    char* here = getcwd(nullptr, 0);
    const std::string folder = here != nullptr ? here : ".";
    std::free(here);
    return folder + "/" + path;
}

std::size_t ring_size(double kilobytes) {
    std::size_t size = kSmallestRing;
    while (static_cast<double>(size) < kilobytes * 1024) size *= 2;
    return size;
}

Config read() {
    Config c;
    const char* folder = variable("ROCPD_OUTPUT_PATH");
    c.folder = absolute(folder != nullptr ? folder : "rocpd-output-data");
    c.start = flag("ROCPD_START", true);
    c.flush_ms = static_cast<unsigned>(number("ROCPD_FLUSH_MS", 1000, 1, 3600e3));
    c.buffer_limit = ring_size(number("ROCPD_BUFFER_KB", 4096, 256, 1 << 20));
    c.sample_hz = number("ROCPD_SAMPLE_HZ", 0, 0, 10000);
    c.smi_hz = number("ROCPD_SMI", 0, 0, 1000);
    c.python_hz = number("ROCPD_PYTHON_STACKS", 0, 0, 1000);
    c.stacks_hz = number("ROCPD_STACKS", 0, 0, 1000);
    c.stacks_wall_hz = number("ROCPD_STACKS_WALL", 0, 0, 1000);
    const char* threads = variable("ROCPD_STACK_THREADS");
    c.stack_threads = threads != nullptr ? threads : "all";
    c.group = flag("ROCPD_GROUP", false);
    const char* kept = variable("ROCPD_KEEP_ENV");
    c.keep_env = kept != nullptr ? kept : "";
    c.control = flag("ROCPD_CONTROL", true);
    c.signals = flag("ROCPD_SIGNALS", true);
    const char* control = variable("ROCPD_CONTROL_DIR");
    c.control_folder = control != nullptr ? control : "/tmp/rocpd-" + std::to_string(geteuid());
    const char* run = variable("ROCPD_RUN");
    c.run = run != nullptr ? run : "";
    const char* overflow = variable("ROCPD_OVERFLOW");
    if (overflow != nullptr && std::strcmp(overflow, "block") != 0 && std::strcmp(overflow, "drop") != 0)
        say(std::string("ROCPD_OVERFLOW=") + overflow + " is neither block nor drop; block is used");
    c.drop = overflow != nullptr && std::strcmp(overflow, "drop") == 0;
    return c;
}

}  // namespace

std::mutex& config_mutex() {
    static std::mutex& only = *new std::mutex;
    return only;
}

const Config& config() {
    // Never destroyed: threads may still record while the process runs its destructors.
    static std::atomic<const Config*> only{nullptr};
    if (const Config* known = only.load(std::memory_order_acquire)) return *known;
    const std::lock_guard<std::mutex> lock(config_mutex());
    if (only.load(std::memory_order_relaxed) == nullptr) only.store(new Config(read()), std::memory_order_release);
    return *only.load(std::memory_order_relaxed);
}

}  // namespace rocpd
