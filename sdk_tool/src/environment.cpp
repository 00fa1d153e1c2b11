#include "environment.h"

#include <unistd.h>

#include <algorithm>

#include "lifecycle.h"

namespace rocpd {
namespace {

std::string& remembered() {
    static std::string& only = *new std::string;
    return only;
}

std::string read_environment() {
    std::string text;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) text.append(*entry) += '\0';
    return text;
}

}  // namespace

void remember_environment() { remembered() = read_environment(); }

std::string environment() { return is_service_thread() ? remembered() : read_environment(); }

std::string_view value_in(std::string_view environment, std::string_view name) {
    for (std::size_t at = 0; at < environment.size();) {
        const std::size_t end = std::min(environment.find('\0', at), environment.size());
        const std::string_view entry = environment.substr(at, end - at);
        if (entry.size() > name.size() && entry[name.size()] == '=' && entry.substr(0, name.size()) == name)
            return entry.substr(name.size() + 1);
        at = end + 1;
    }
    return {};
}

}  // namespace rocpd
