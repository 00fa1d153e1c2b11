// Turns bytes into JSON and readable text.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace rocpd {

// How bytes that are not UTF-8 are written.
enum class Stray {
    kReadable,  // shown as \xff, so that any reader can show the text
    kExact,     // escaped as \udcff, which Python's surrogateescape turns back into the byte
};

// Appends a JSON string, with its quotes.
void append_json(std::string& out, std::string_view text, Stray stray = Stray::kReadable);

// An object or an array, put together member by member.
class Json {
public:
    explicit Json(char bracket = '{') : text_(1, bracket) {}

    template <typename Number, typename = std::enable_if_t<std::is_integral_v<Number>>>
    Json& add(std::string_view name, Number value) {
        return add_json(name, std::to_string(value));
    }
    Json& add(std::string_view name, std::string_view value) {
        next(name);
        append_json(text_, value);
        return *this;
    }
    Json& add(std::string_view name, const char* value) {
        return add(name, std::string_view(value != nullptr ? value : ""));
    }
    // A member that is JSON already; members of arrays have no name.
    Json& add_json(std::string_view name, std::string_view json) {
        next(name);
        text_ += json;
        return *this;
    }
    std::string text() const { return text_ + (text_[0] == '{' ? '}' : ']'); }

private:
    void next(std::string_view name) {
        if (text_.size() > 1) text_ += ',';
        if (text_[0] != '{') return;
        append_json(text_, name);
        text_ += ':';
    }

    std::string text_;
};

// Returns the text as UTF-8: other bytes become \xff, the rest is unchanged.
std::string readable(std::string_view text);

// Length of the UTF-8 character that starts at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace rocpd
