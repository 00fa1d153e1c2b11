// Generated from rocpd/redact/data/secrets.toml, which says what each is. Never edited by hand.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace rocpd {

constexpr std::array<std::string_view, 13> kInNames = {
    "token",
    "pass",
    "_pwd",
    "secret",
    "key",
    "credential",
    "private",
    "auth",
    "cookie",
    "jwt",
    "bearer",
    "session",
    "dsn",
};

constexpr std::array<std::string_view, 24> kParts = {
    "accesskey",
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "jwt",
    "key",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "private",
    "pwd",
    "secret",
    "secrets",
    "session",
    "sessionid",
    "sshpass",
    "token",
};

constexpr std::array<std::string_view, 6> kEndings = {
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "token",
};

constexpr std::array<std::string_view, 4> kLoginOptions = {
    "-u",
    "-U",
    "--user",
    "--proxy-user",
};

constexpr std::array<std::string_view, 14> kSettings = {
    "password=",
    "passwd=",
    "pwd=",
    "passphrase=",
    "secret=",
    "token=",
    "key=",
    "pass=",
    "apikey=",
    "bearer ",
    "accountkey=",
    "accesskey=",
    "sig=",
    "pw=",
};

constexpr std::array<std::string_view, 4> kShortSettings = {
    "key=",
    "pass=",
    "sig=",
    "pw=",
};

constexpr std::array<std::string_view, 3> kHosts = {
    "tcp(",
    "udp(",
    "unix(",
};

constexpr std::size_t kLongestLogin = 1024;

constexpr std::string_view kPrivateKey = "PRIVATE KEY-----";

struct Shape {
    std::string_view start;
    std::size_t least;
};
constexpr std::array<Shape, 29> kShapes = {{
    {"ghp_", 20},
    {"gho_", 20},
    {"ghu_", 20},
    {"ghs_", 20},
    {"ghr_", 20},
    {"hf_", 20},
    {"github_pat_", 20},
    {"glpat-", 16},
    {"sk-", 20},
    {"xoxb-", 10},
    {"xoxp-", 10},
    {"xoxa-", 10},
    {"xoxr-", 10},
    {"xoxs-", 10},
    {"xapp-", 10},
    {"AKIA", 16},
    {"ASIA", 16},
    {"AIza", 30},
    {"npm_", 30},
    {"dop_v1_", 20},
    {"eyJ", 20},
    {"pypi-AgE", 20},
    {"sk_live_", 16},
    {"rk_live_", 16},
    {"nvapi-", 20},
    {"dckr_pat_", 20},
    {"ya29.", 20},
    {"hvs.", 20},
    {"gsk_", 20},
}};

}  // namespace rocpd
