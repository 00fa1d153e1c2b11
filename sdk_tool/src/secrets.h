// Finds the values of a command line and an environment that may be secrets; these are stored as ***.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace rocpd {

// What the user wants stored as it is, although it looks like a secret: the value of ROCPD_KEEP_ENV.
class Kept {
public:
    explicit Kept(std::string names) : names_(std::move(names)) {}
    // The whole environment and the command line.
    bool all() const { return names_ == "1" || names_ == "all"; }
    // The environment variable of this name.
    bool variable(std::string_view name) const;

private:
    std::string names_;  // separated by commas
};

// Returns the value of an environment variable as it is stored.
std::string_view shown_value(std::string_view name, std::string_view value);

// Returns the words of a command line, each ended by a zero, as they are stored.
std::string shown_words(const std::string& words);

}  // namespace rocpd
