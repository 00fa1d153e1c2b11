// Owns turning bytes into JSON and readable text.
#pragma once

#include <string>
#include <string_view>

namespace rocpd {

// How bytes that are not UTF-8 are written.
enum class Stray {
    kReadable,  // shown as \xff, so that any reader can show the text
    kExact,     // escaped as \udcff, which Python's surrogateescape turns back into the byte
};

// Appends a JSON string, with its quotes.
void append_json(std::string& out, std::string_view text, Stray stray = Stray::kReadable);

// Returns the text as UTF-8: other bytes become \xff, the rest is unchanged.
std::string readable(std::string_view text);

// Length of the UTF-8 character that starts at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace rocpd
