"""Finds what looks like a secret in a text, by the rules of `data/secrets.toml`, which the recorder has, too.

In time that grows with the text: every place is looked at a bounded number of times, however long a word is. Never
knows what stands in the place of a secret.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from rocpd.base.frozen import frozen

_LONGEST_NAME = 64
_LONGEST_LOGIN, _MOST_SIGNS = 1024, 8  # characters of a login in a URL, and @ that are looked at
_NO_BLANK = re.compile(r"[^ \t\n\"']*")
_PARTS = re.compile(r"[_\-.:+]")
_END_OF_VALUE = re.compile(r"[ ;&,'\"\t\n)]")
_END_OF_LINE = re.compile(r"[\r\n'\"]")
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_PEM = r"-----BEGIN [A-Z ]{0,40}-----"
_END_OF_PEM = re.compile(r"-----END [A-Z ]{0,40}-----")


@frozen
class Rules:
    """The rules as the file has them; see there."""

    in_names: Sequence[str]
    parts: frozenset[str]
    endings: tuple[str, ...]
    login_options: Sequence[str]
    settings: tuple[str, ...]
    short_settings: tuple[str, ...]
    go_hosts: tuple[str, ...]
    private_key: str
    tokens: Mapping[str, int]


@functools.cache
def rules() -> Rules:
    """Return the rules."""
    table: dict[str, Any] = tomllib.loads((files("rocpd.redact") / "data" / "secrets.toml").read_text(encoding="utf-8"))
    as_tuples: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    return Rules(**{**as_tuples, "parts": frozenset(table["parts"])})


def names_secret(variable: str) -> bool:
    """Whether the name of an environment variable says that its value is a secret.

    >>> names_secret("WANDB_API_KEY"), names_secret("MYSQL_PWD"), names_secret("PATH"), names_secret("OLDPWD")
    (True, True, False, False)
    """
    text = variable.lower()
    return has_secret_part(text) or any(word in text for word in rules().in_names)


def has_secret_part(name: str) -> bool:
    """Whether a part of a name says so: of an option, a setting, a header, a key of JSON."""
    known = rules()
    return any(part in known.parts or part.endswith(known.endings) for part in _PARTS.split(name.lower()))


def secrets_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of what looks like a secret, in order, none inside another.

    >>> text = "wandb --api-key 0123abcd, api_key=x1 {'token': 'abc'} monkey=5 ghp_0123456789abcdefghijk"
    >>> [text[start:end] for start, end in secrets_in(text)]
    ['0123abcd,', 'x1', 'abc', 'ghp_0123456789abcdefghijk']
    """
    until = 0
    for match in _candidates().finditer(text):
        if match.start() >= until and (span := _secret_at(text, match)) and span[1] > span[0]:
            yield span
            until = span[1]


@functools.cache
def _candidates() -> re.Pattern[str]:
    """Return what finds each place at which a secret, or what names one, may be."""
    starts = "|".join(re.escape(start) for start in sorted(rules().tokens, key=len, reverse=True))
    token = rf"(?<![\w.\-])(?P<token>{starts})"
    option = rf"(?<!\S)(?P<option>--?[A-Za-z][\w\-]{{0,{_LONGEST_NAME}}}[ \t]+)(?![\s-])"
    bearer = r"(?P<bearer>(?i:\bbearer[ \t]+))"
    return re.compile(rf"(?P<pem>{_PEM})|{bearer}|{option}|{token}|(?P<url>://)|(?P<equals>=)|(?P<colon>:)")


def _secret_at(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return start and end of the secret at a candidate, or named by it."""
    at, end = match.span()
    match match.lastgroup:
        case "pem":
            closed = _END_OF_PEM.search(text, end)
            return at, closed.end() if closed else len(text)
        case "bearer":
            return at, _end_of_word(text, end)
        case "option":
            return (end, _end_of_word(text, end)) if has_secret_part(match[0].strip(" \t-")) else None
        case "token":
            return _token(text, at, end)
        case "url":
            login = _end_of_login(text[end : end + _LONGEST_LOGIN])
            return (end, end + login) if login else None
        case "equals":
            return _setting(text, at)
    return _pair(text, at) or _go_login(text, at)


def _token(text: str, at: int, end: int) -> tuple[int, int] | None:
    start = text[at:end]
    while end < len(text) and (text[end].isalnum() or text[end] in "_-."):
        end += 1
    rest = text[at + len(start) : end]
    # Words with dashes are long too, but hold no digits.
    return (at, end) if len(rest) >= rules().tokens[start] and any(map(str.isdigit, rest)) else None


def _name_before(text: str, at: int) -> str:
    """Return the name that ends at a place, which may be in quotes."""
    end = at - 1 if at and text[at - 1] in "\"'" else at
    start = end
    while start > max(0, end - _LONGEST_NAME) and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return text[start:end]


def _setting(text: str, at: int) -> tuple[int, int] | None:
    """Return the value of `name=value`, or of `name = value`."""
    end = at
    while end > max(0, at - 8) and text[end - 1] in " \t":
        end -= 1
    name = _name_before(text, end).lower()
    if not has_secret_part(name):
        known, setting = rules(), f"{name}="
        ending = next((each for each in known.settings if setting.endswith(each)), "")
        before = setting[: -len(ending)][-1:] if ending else ""
        if not ending or (ending in known.short_settings and before.isalpha()):
            return None
    value = at + 1
    while end < at and value < len(text) and text[value] in " \t":
        value += 1
    return _value(text, value)


def _pair(text: str, colon: int) -> tuple[int, int] | None:
    """Return the value of a pair of JSON or YAML, or of a header: "password":"x", password: x."""
    value = colon + 1
    while value < len(text) and text[value].isspace():
        value += 1
    is_pair = (colon > 0 and text[colon - 1] in "\"'") or value > colon + 1
    name = _name_before(text, colon).lower()
    if not is_pair or value == len(text) or name == "key" or not has_secret_part(name):
        return None  # a key of a table is none of a lock
    if name in _HEADERS:
        line = _END_OF_LINE.search(text, value + 1)
        return value, line.start() if line else len(text)
    return _value(text, value)


def _value(text: str, at: int) -> tuple[int, int]:
    """Return start and end of a value; of one in quotes, what is between them."""
    return at + (text[at : at + 1] in ("'", '"')), _end_of_value(text, at)


def _go_login(text: str, colon: int) -> tuple[int, int] | None:
    """Return the password of a login in a data source of Go."""
    if not colon or not (text[colon - 1].isalnum() or text[colon - 1] in "_-."):
        return None
    followed = _NO_BLANK.match(text, colon + 1, colon + 1 + _LONGEST_LOGIN)
    rest = followed[0] if followed else ""
    at = rest.find("@")
    for _ in range(_MOST_SIGNS):
        if at < 0:
            return None
        # Paths with an @ look alike, but start with a slash, too.
        if rest.startswith(rules().go_hosts, at + 1) or (rest.startswith("/", at + 1) and "/" not in rest[:at]):
            return colon + 1, colon + 1 + at
        at = rest.find("@", at + 1)
    return None


def _end_of_login(rest: str) -> int:
    """Return where a login in a URL ends, 0 where there is none: scheme://user:password@host, scheme://token@host."""
    rest = rest[: _end_of_value(rest, 0)]
    at = rest.find("@")
    colon, slash = rest.find(":"), rest.find("/")
    # A password may hold a slash, a token does not.
    return at if at > 0 and (0 <= colon < at or slash < 0 or slash > at) else 0


def _end_of_value(text: str, at: int) -> int:
    if at < len(text) and text[at] in "\"'":
        closed = text.find(text[at], at + 1)
        return closed if closed >= 0 else len(text)
    ends = _END_OF_VALUE.search(text, at)
    return ends.start() if ends else len(text)


def _end_of_word(text: str, at: int) -> int:
    if at < len(text) and text[at] in "\"'":
        return _end_of_value(text, at)
    ends = re.compile(r"\s").search(text, at)
    return ends.start() if ends else len(text)
