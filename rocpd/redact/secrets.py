"""Finds likely secrets in a text, by the rules of `data/secrets.toml`, which the recorder uses, too.

The time grows linearly with the text: every place is looked at a bounded number of times, however long a word is. Knows
nothing of the replacements of secrets.
"""

from __future__ import annotations

import bisect
import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rocpd.base import frozen

_LONGEST_NAME, _MOST_BLANKS = 64, 8  # characters of a name before a sign, and blanks between
_BLANKS = " \t\n\"'"
_END_OF_VALUE = re.compile(r"[ ;&,'\"\t\n)]")
_END_OF_LINE = re.compile(r"[\r\n'\"]")
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_PEM = r"-----BEGIN [A-Z ]{0,40}-----"
_END_OF_PEM = re.compile(r"-----END [A-Z ]{0,40}-----")


@frozen
class Rules:
    """The rules of the file, which explains them."""

    in_names: Sequence[str]
    parts: frozenset[str]
    endings: tuple[str, ...]
    login_options: Sequence[str]
    settings: tuple[str, ...]
    short_settings: tuple[str, ...]
    go_hosts: tuple[str, ...]
    longest_login: int
    private_key: str
    tokens: Mapping[str, int]


@functools.cache
def rules() -> Rules:
    """Return the rules."""
    table: dict[str, Any] = tomllib.loads((files("rocpd.redact") / "data" / "secrets.toml").read_text(encoding="utf-8"))
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    return Rules(**{**known, "parts": frozenset(table["parts"])})


def names_secret(variable: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret.

    >>> names_secret("WANDB_API_KEY"), names_secret("MYSQL_PWD"), names_secret("PATH"), names_secret("OLDPWD")
    (True, True, False, False)
    """
    text = variable.lower()
    return has_secret_part(text) or any(word in text for word in rules().in_names)


def has_secret_part(name: str) -> bool:
    """Whether a part of a name stands for a secret: the name of an option, a setting, a header, a key of JSON."""
    return bool(_secret_parts().search(name.lower()))


@functools.cache
def _secret_parts() -> re.Pattern[str]:
    known, between = rules(), r"[_\-.:+]"
    start, end = rf"(?:^|{between})", rf"(?:{between}|\Z)"
    return re.compile(rf"{start}(?:{'|'.join(sorted(known.parts))}){end}|(?:{'|'.join(known.endings)}){end}")


def secrets_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of likely secrets, in order, none inside another.

    >>> text = "wandb --api-key 0123abcd, api_key=x1 {'token': 'abc'} monkey=5 ghp_0123456789abcdefghijk"
    >>> [text[start:end] for start, end in secrets_in(text)]
    ['0123abcd,', 'x1', 'abc', 'ghp_0123456789abcdefghijk']
    """
    until, logins = 0, _ends_of_logins(text)
    for match in _candidates().finditer(text):
        # The name of a secret counts from its end on: `password: token: x`, `key=-----BEGIN RSA PRIVATE KEY-----`.
        place = match.end() if match.lastgroup in ("named", "pem") else match.start()
        if place >= until and (span := _secret_at(text, match, logins)) and span[1] > max(until, span[0]):
            yield max(until, span[0]), span[1]
            until = span[1]


@functools.cache
def _candidates() -> re.Pattern[str]:
    """Return the expression for each place where a secret, or the name of a secret, may be.

    A sign counts only after a word from names of secrets, since texts are full of signs.
    """
    starts = "|".join(re.escape(start) for start in sorted(rules().tokens, key=len, reverse=True))
    token = rf"(?<![\w.\-])(?P<token>{starts})"
    sign = r"[=:](?:\s|$)"  # the value follows
    option = rf"(?<!\S)(?=(?P<option>--?[A-Za-z][\w\-]{{0,{_LONGEST_NAME}}}[ \t]+)(?![\s\-]|{sign}))"
    bearer = rf"(?P<bearer>(?i:\bbearer[ \t]++))(?!{sign})"
    name = rf"(?i:{'|'.join(_words())})[\w.\-]{{0,{_LONGEST_NAME}}}+[\"']?"
    named = rf"(?P<named>{name}[ \t]{{0,{_MOST_BLANKS}}}(?:=|:(?!//)))"
    login = r"(?<=[\w.\-])(?P<login>:(?!//))"
    return re.compile(rf"(?P<pem>{_PEM})|{bearer}|{option}|{token}|(?P<url>://)|{named}|{login}")


def _words() -> list[str]:
    """Return the shortest words of which every name of a secret has one."""
    known = rules()
    words = {*known.parts, *known.endings, *(setting.rstrip("= ") for setting in known.settings)}
    return [word for word in sorted(words) if not any(other in word for other in words - {word})]


def _ends_of_logins(text: str) -> list[int]:
    """Return the places where a login of a data source of Go may end: before the names of its hosts."""
    return [match.start() for match in _before_hosts().finditer(text)]


@functools.cache
def _before_hosts() -> re.Pattern[str]:
    return re.compile(rf"@(?={'|'.join(map(re.escape, rules().go_hosts))})")


def _secret_at(text: str, match: re.Match[str], logins: Sequence[int]) -> tuple[int, int] | None:
    """Return start and end of the secret at a candidate, or named by it."""
    at, end = match.span(match.lastgroup or 0)
    match match.lastgroup:
        case "pem":
            closed = _END_OF_PEM.search(text, end)
            return at, closed.end() if closed else len(text)
        case "bearer":
            return at, _end_of_word(text, end)
        case "option":
            return (end, _end_of_word(text, end)) if has_secret_part(text[at:end].strip(" \t-")) else None
        case "token":
            return _token(text, at, end)
        case "url":
            login = _end_of_login(text, end)
            return (end, login) if login else None
        case "login":
            return _go_login(text, at, logins)
    sign = end - 1
    return _setting(text, sign) if text[sign] == "=" else _pair(text, sign) or _go_login(text, sign, logins)


def _token(text: str, at: int, end: int) -> tuple[int, int] | None:
    start = text[at:end]
    while end < len(text) and (text[end].isalnum() or text[end] in "_-."):
        end += 1
    rest = text[at + len(start) : end]
    # Words with dashes are long, too, but hold no digits.
    return (at, end) if len(rest) >= rules().tokens[start] and any(map(str.isdigit, rest)) else None


def _end_of_name(text: str, sign: int) -> int:
    """Return the end of the text before a sign, without blanks."""
    end = sign
    while end > max(0, sign - _MOST_BLANKS) and text[end - 1] in " \t":
        end -= 1
    return end


def _name_before(text: str, at: int) -> str:
    """Return the name that ends at a place, which may be in quotes."""
    end = at - 1 if at and text[at - 1] in "\"'" else at
    start = end
    while start > max(0, end - _LONGEST_NAME) and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return text[start:end]


def _setting(text: str, at: int) -> tuple[int, int] | None:
    """Return the value of `name=value`, or of `name = value`."""
    end = _end_of_name(text, at)
    name = _name_before(text, end).lower()
    if not has_secret_part(name) and not _settings().search(name):
        return None
    value = at + 1
    while end < at and value < len(text) and text[value] in " \t":
        value += 1
    return _value(text, value)


@functools.cache
def _settings() -> re.Pattern[str]:
    """Return the expression for the end of a name that is a setting; short ones must not be part of a word."""
    known = rules()
    long, short = (
        "|".join(each.removesuffix("=") for each in names if each.endswith("="))
        for names in (set(known.settings) - set(known.short_settings), known.short_settings)
    )
    return re.compile(rf"(?:{long}|(?<![^\W\d_])(?:{short}))\Z")


def _pair(text: str, colon: int) -> tuple[int, int] | None:
    """Return the value of a pair of JSON or YAML, or of a header: "password":"x", password: x."""
    value = colon + 1
    while value < len(text) and text[value].isspace():
        value += 1
    end = _end_of_name(text, colon)
    is_pair = (end > 0 and text[end - 1] in "\"'") or value > colon + 1
    name = _name_before(text, end).lower()
    if not is_pair or value == len(text) or name == "key" or not has_secret_part(name):
        return None  # a "key" alone is a key of a table
    if name in _HEADERS:
        line = _END_OF_LINE.search(text, value + 1)
        return value, line.start() if line else len(text)
    return _value(text, value)


def _value(text: str, at: int) -> tuple[int, int]:
    """Return start and end of a value, without its quotes."""
    return at + (text[at : at + 1] in ("'", '"')), _end_of_value(text, at)


def _go_login(text: str, colon: int, ends: Sequence[int]) -> tuple[int, int] | None:
    """Return the password of a login in a data source of Go; it ends at one of `ends`, or before a path."""
    start, until = colon + 1, colon + 1 + rules().longest_login
    slash = text.find("/", start, until)
    end = slash - 1 if slash > start and text[slash - 1] == "@" else until  # paths with an @ start with a slash, too
    host = bisect.bisect_right(ends, start)
    end = min(end, ends[host]) if host < len(ends) else end
    has_user = text[colon - 1] not in _BLANKS
    is_login = has_user and start < end < until and all(text.find(blank, start, end) < 0 for blank in _BLANKS)
    return (start, end) if is_login else None


def _end_of_login(text: str, at: int) -> int:
    """Return the end of a login in a URL, 0 if there is none: scheme://user:password@host, scheme://token@host."""
    end = text.find("@", at, at + rules().longest_login)
    if end <= at or _end_of_value(text, at, end) < end:
        return 0
    # A password may hold a slash, a token does not.
    return end if text.find(":", at, end) >= 0 or text.find("/", at, end) < 0 else 0


def _end_of_value(text: str, at: int, until: int | None = None) -> int:
    until = len(text) if until is None else until
    if at < len(text) and text[at] in "\"'":
        closed = text.find(text[at], at + 1, until)
        return closed if closed >= 0 else until
    ends = _END_OF_VALUE.search(text, at, until)
    return ends.start() if ends else until


def _end_of_word(text: str, at: int) -> int:
    if at < len(text) and text[at] in "\"'":
        return _end_of_value(text, at)
    ends = re.compile(r"\s").search(text, at)
    return ends.start() if ends else len(text)
