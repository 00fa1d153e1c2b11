#include "secrets.h"

#include "secret_shapes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace rocpd {
namespace {

constexpr std::string_view kMask = "***";

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool in_token(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_quote(char c) { return c == '"' || c == '\''; }
bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }
bool ends_with(std::string_view text, std::string_view ending) {
    return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool has_secret_part(std::string_view name) {
    const std::string text = lower(name);
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find_first_of("_-.:+", at), text.size());
        const std::string_view part = std::string_view(text).substr(at, end - at);
        if (std::find(kParts.begin(), kParts.end(), part) != kParts.end()) return true;
        if (std::any_of(kEndings.begin(), kEndings.end(),
                        [&](std::string_view ending) { return ends_with(part, ending); }))
            return true;
        at = end + 1;
    }
    return false;
}

bool names_secret(std::string_view variable) {
    const std::string text = lower(variable);
    return has_secret_part(text) || std::any_of(kInNames.begin(), kInNames.end(), [&](std::string_view word) {
               return text.find(word) != std::string::npos;
           });
}

// Where the password of a login in a data source of Go ends, which starts at `rest`; npos where there is none.
std::size_t end_of_go_password(std::string_view rest) {
    for (auto at = rest.find('@'); at != std::string_view::npos; at = rest.find('@', at + 1)) {
        const std::string_view host = rest.substr(at + 1);
        if (std::any_of(kHosts.begin(), kHosts.end(), [&](std::string_view start) { return starts_with(host, start); }))
            return at;
        // Paths with an @ look alike, but start with a slash, too.
        if (starts_with(host, "/") && rest.substr(0, at).find('/') == std::string_view::npos) return at;
    }
    return std::string_view::npos;
}

// Where a login in a URL ends, npos where there is none: scheme://user:password@host, scheme://token@host. A password
// may hold a slash, a token does not.
std::size_t end_of_login(std::string_view rest) {
    const auto at = rest.find('@');
    if (at == std::string_view::npos) return at;
    return rest.find(':') < at || rest.find('/') > at ? at : std::string_view::npos;
}

// MyPassword= is a setting of that kind, monkey= is none.
bool is_inside_word(std::string_view lower_case, std::size_t at) {
    const std::string_view setting = lower_case.substr(at);
    const bool is_short = std::any_of(kShortSettings.begin(), kShortSettings.end(),
                                      [&](std::string_view start) { return starts_with(setting, start); });
    return is_short && at > 0 && std::isalpha(static_cast<unsigned char>(lower_case[at - 1])) != 0;
}

// The name that ends at a place, which may be in quotes: of a header, of a pair in JSON or YAML.
std::string_view name_before(std::string_view text, std::size_t at) {
    const std::size_t end = at > 0 && is_quote(text[at - 1]) ? at - 1 : at;
    std::size_t start = end;
    while (start > 0 && in_token(text[start - 1])) --start;
    return text.substr(start, end - start);
}

// So many bytes, from the colon on, stand before a secret value: "password":"x", password: x. 0 where none follows.
std::size_t before_pair_value(std::string_view text, std::size_t colon) {
    std::size_t end = colon, value = colon + 1;
    while (end > 0 && is_blank(text[end - 1])) --end;
    while (value < text.size() && is_blank(text[value])) ++value;
    const bool is_pair = (end > 0 && is_quote(text[end - 1])) || value > colon + 1;
    if (!is_pair || value == text.size()) return 0;
    const std::string_view name = name_before(text, end);
    return lower(name) != "key" && has_secret_part(name) ? value - colon : 0;  // a key of a table is none of a lock
}

// So many bytes, from the equals sign on, stand before a secret value: aws_secret_key = x. 0 where none follows.
std::size_t before_set_value(std::string_view text, std::size_t equals) {
    std::size_t end = equals, value = equals + 1;
    while (end > 0 && is_blank(text[end - 1])) --end;
    while (end < equals && value < text.size() && is_blank(text[value])) ++value;
    return value < text.size() && has_secret_part(name_before(text, end)) ? value - equals : 0;
}

std::size_t end_of_setting(std::string_view text, std::size_t at) {
    const char quote = at < text.size() && is_quote(text[at]) ? text[at] : '\0';
    if (quote != '\0') return std::min(text.find(quote, at + 1), text.size());
    return std::min(text.find_first_of(" ;&,'\"\t\n)", at), text.size());
}

// Size of the token at the start of `text`, 0 where it looks like none.
std::size_t token_at(std::string_view text) {
    for (const Shape& shape : kShapes) {
        if (!starts_with(text, shape.start)) continue;
        std::size_t end = shape.start.size();
        while (end < text.size() && in_token(text[end])) ++end;
        const std::string_view rest = text.substr(shape.start.size(), end - shape.start.size());
        // Words with dashes are long too, but hold no digits.
        if (rest.size() >= shape.least && std::any_of(rest.begin(), rest.end(), is_digit)) return end;
    }
    return 0;
}

// Returns the text with what stands for a secret inside it masked: settings, logins in URLs, tokens.
std::string inside_masked(std::string_view text) {
    const std::string small = lower(text);
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t kept = 0, end = 0;  // so many bytes stay, then the mask stands for those up to `end`
        for (const std::string_view setting : kSettings)
            if (std::string_view(small).substr(at, setting.size()) == setting && !is_inside_word(small, at)) {
                kept = setting.size();
                end = end_of_setting(text, at + kept);
                break;
            }
        if (end == 0 && text[at] == '=') {
            kept = before_set_value(text, at);
            if (kept > 0) end = end_of_setting(text, at + kept);
        }
        if (end == 0 && text[at] == ':') {
            kept = before_pair_value(text, at);
            if (kept > 0) end = end_of_setting(text, at + kept);
        }
        if (end == 0 && text[at] == ':' && at > 0 && in_token(text[at - 1])) {
            const std::string_view rest = text.substr(at + 1, kLongestLogin);
            const std::size_t size = end_of_go_password(rest.substr(0, rest.find_first_of(" \t\n\"'")));
            if (size != std::string_view::npos) kept = 1, end = at + 1 + size;
        }
        if (end == 0 && text.substr(at, 3) == "://") {
            const std::string_view rest = text.substr(at + 3, kLongestLogin);
            const std::size_t login = end_of_login(rest.substr(0, end_of_setting(rest, 0)));
            if (login != std::string_view::npos) kept = 3, end = at + 3 + login;
        }
        if (end == 0 && (at == 0 || !in_token(text[at - 1])))
            if (const std::size_t size = token_at(text.substr(at)); size > 0) end = at + size;
        if (end > at + kept) {
            result += text.substr(at, kept);
            result += kMask;
            at = end;
        } else {
            result += text[at++];
        }
    }
    return result;
}

std::string_view without_dashes(std::string_view option) {
    return option.substr(std::min(option.find_first_not_of("-'\""), option.size()));
}

// Whether an option that says so is followed by its value: --api-key x.
bool holds_secret_option(std::string_view text) {
    bool follows = false;
    for (std::size_t at = text.find_first_not_of(" \t\n"); at < text.size(); at = text.find_first_not_of(" \t\n", at)) {
        const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (follows && word[0] != '-') return true;
        follows = word.size() > 1 && word[0] == '-' && has_secret_part(without_dashes(word));
        at = end;
    }
    return false;
}

bool holds_secret(std::string_view value) {
    return value.find(kPrivateKey) != std::string_view::npos || holds_secret_option(value) ||
           inside_masked(value) != value;
}

// Masks the words of a command line one by one. A word may be a command line itself: sh -c 'mysql -psecret'.
class Line {
public:
    std::string shown(std::string_view word) {
        const bool is_first = std::exchange(first_, false);
        rest_ = false;
        if (word.find(kPrivateKey) != std::string_view::npos) return std::string(kMask);
        std::string result;
        for (std::size_t at = 0; at < word.size();) {
            std::size_t end = at;
            while (end < word.size() && is_blank(word[end])) ++end;
            result += word.substr(at, end - at);
            at = end;
            while (end < word.size() && !is_blank(word[end])) ++end;
            if (end > at)
                result += is_first ? inside_masked(word.substr(at, end - at)) : piece(word.substr(at, end - at));
            at = end;
        }
        return result;
    }

private:
    std::string piece(std::string_view text) {
        const bool follows = std::exchange(secret_next_, false);
        const bool is_login = std::exchange(login_next_, false);
        const std::string_view before = std::exchange(before_, text);
        if (text == "=" || text == ":") {  // a key of a table is none of a lock
            const std::string_view name = name_before(before, before.size());
            secret_next_ = has_secret_part(name) && (text == "=" || lower(name) != "key");
            rest_ = rest_ || (secret_next_ && text == ":");  // of headers
            return std::string(text);
        }
        if (rest_ || (follows && text.front() != '-')) return std::string(kMask);
        const auto equals = text.find('=');
        const std::string_view name = text.substr(0, equals);
        if (is_login) return login(text);
        if (equals != std::string_view::npos && is_login_option(name))
            return std::string(name) + "=" + login(text.substr(equals + 1));
        if (equals != std::string_view::npos && text.size() > equals + 1 && has_secret_part(without_dashes(name))) {
            const char quote = text[equals + 1];
            // A value in quotes may hold blanks: then the rest of the word is masked.
            rest_ = is_quote(quote) && (text.size() == equals + 2 || text.back() != quote);
            return std::string(name) + "=" + std::string(kMask);
        }
        if (equals == std::string_view::npos) {
            if (text.size() > 2 && text[0] == '-' && text[1] == 'p' &&
                !std::all_of(text.begin() + 2, text.end(), is_digit))
                return "-p" + std::string(kMask);
            const bool is_option = text.size() > 1 && text[0] == '-';
            const bool is_header = text.size() > 1 && text.back() == ':';
            if (is_header && has_secret_part(name_before(text, text.size() - 1))) rest_ = true;
            login_next_ = is_login_option(text);
            secret_next_ =
                (is_option && has_secret_part(without_dashes(text))) || lower(without_dashes(text)) == "bearer";
        }
        return inside_masked(text);
    }

    static bool is_login_option(std::string_view text) {
        return std::find(kLoginOptions.begin(), kLoginOptions.end(), text) != kLoginOptions.end();
    }

    // me:secret; the numbers of a user and a group are none.
    static std::string login(std::string_view text) {
        const auto colon = text.find(':');
        if (colon == std::string_view::npos || std::all_of(text.begin() + colon + 1, text.end(), is_digit))
            return inside_masked(text);
        return std::string(text.substr(0, colon + 1)) + std::string(kMask);
    }

    std::string_view before_;   // the piece before this one
    bool first_ = true;         // the program's own name
    bool secret_next_ = false;  // the piece before this one says that this one is a secret
    bool login_next_ = false;   // or that it holds one
    bool rest_ = false;         // so is the rest of the word
};

}  // namespace

bool Kept::variable(std::string_view name) const {
    if (all()) return true;
    for (std::size_t at = 0; at < names_.size();) {
        const std::size_t end = std::min(names_.find(',', at), names_.size());
        if (std::string_view(names_).substr(at, end - at) == name) return true;
        at = end + 1;
    }
    return false;
}

std::string_view shown_value(std::string_view name, std::string_view value) {
    return !value.empty() && (names_secret(name) || holds_secret(value)) ? kMask : value;
}

std::string shown_words(const std::string& words) {
    std::string result;
    Line line;
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find('\0', at), words.size());
        result += line.shown(std::string_view(words).substr(at, end - at));
        result += '\0';
        at = end + 1;
    }
    return result;
}

}  // namespace rocpd
