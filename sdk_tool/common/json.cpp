#include "json.h"

#include <cstdio>

namespace rocpd {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool follows(std::string_view text, std::size_t at, std::size_t count) {
    for (std::size_t i = 1; i <= count; ++i)
        if ((byte_at(text, at + i) & 0xC0u) != 0x80u) return false;
    return true;
}

void append_format(std::string& out, const char* format, unsigned value) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, format, value);
    out += buffer;
}

void append_ascii(std::string& out, char c) {
    switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\n': out += "\\n"; break;
        case '\r': out += "\\r"; break;
        case '\t': out += "\\t"; break;
        default:
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
                append_format(out, "\\u%04x", static_cast<unsigned char>(c));
            else
                out += c;
    }
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
    const unsigned first = byte_at(text, at);
    const unsigned second = byte_at(text, at + 1);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return follows(text, at, 1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        if (first == 0xE0 && second < 0xA0) return 0;  // overlong
        if (first == 0xED && second > 0x9F) return 0;  // a surrogate
        return follows(text, at, 2) ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (first == 0xF0 && second < 0x90) return 0;
        if (first == 0xF4 && second > 0x8F) return 0;
        return follows(text, at, 3) ? 4 : 0;
    }
    return 0;
}

void append_json(std::string& out, std::string_view text, Stray stray) {
    out += '"';
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        if (length == 0) {
            append_format(out, stray == Stray::kExact ? "\\udc%02x" : "\\\\x%02x", byte_at(text, at));
            ++at;
        } else if (length == 1) {
            append_ascii(out, text[at++]);
        } else {
            out.append(text, at, length);
            at += length;
        }
    }
    out += '"';
}

std::string readable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        if (length == 0) {
            append_format(out, "\\x%02x", byte_at(text, at));
            ++at;
        } else {
            out.append(text, at, length);
            at += length;
        }
    }
    return out;
}

}  // namespace rocpd
