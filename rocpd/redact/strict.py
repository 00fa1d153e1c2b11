"""Redacts for level `strict`: texts listed in `data/strict.toml` stay, every other text becomes a pseudonym or goes.

Names of kernels and markers are replaced by names from the survey. Listed texts pass through the rules of level
`share`, too. Knows neither tables nor files.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from rocpd.base import frozen
from rocpd.base.texts import json_object
from rocpd.redact.options import Clue
from rocpd.redact.texts import Redactor

_NUMBER = r"-?\d{1,15}(?![\w.])|-?\d{1,15}\.\d{1,17}(?:[eE][+-]?\d{1,3})?(?!\w)"
_WORD = rf"{_NUMBER}|0[xX][0-9a-fA-F]{{1,16}}(?!\w)|[xyz]=|(?:True|False|None)(?!\w)"
_NUMBERS = re.compile(rf"(?:(?<![\w.])(?:{_WORD})|, ?|[\[\](){{}}.])++")
"""Numbers and addresses, alone, in brackets or between commas: at most 15 digits, fewer than a card's number has."""

_POINTER = re.compile(r"\b0[xX][0-9a-fA-F]{6,}\b")
_LARGEST = 10**15
_TIMES = frozenset({"start", "end"})  # keys of JSON


@frozen
class Allowed:
    """Values that stay, from the file, which explains them."""

    words: frozenset[str]
    names: tuple[re.Pattern[str], ...]
    instructions: tuple[re.Pattern[str], ...]
    arguments: frozenset[str]
    keys: frozenset[str]
    tags: frozenset[str]
    variables: frozenset[str]


@functools.cache
def allowed() -> Allowed:
    """Return the list."""
    text = (files("rocpd.redact") / "data" / "strict.toml").read_text(encoding="utf-8")
    table: dict[str, list[str]] = tomllib.loads(text)
    expressions = {name: tuple(map(re.compile, table.pop(name))) for name in ("names", "instructions")}
    given: dict[str, Any] = {**expressions, **{name: frozenset(texts) for name, texts in table.items()}}
    return Allowed(**given)


def is_public(name: str) -> bool:
    """Whether a name belongs to a public interface, and has no part from the user.

    >>> is_public("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"), is_public("my_all_reduce(float*)")
    (True, False)
    """
    return any(known.groups == 0 and known.fullmatch(name) for known in allowed().names)


def is_listed(name: str) -> bool:
    """Whether a name belongs to a public interface, even if a part of it is from the user."""
    return any(known.fullmatch(name) for known in allowed().names)


class Strict(Redactor):
    """Keeps listed texts.

    >>> from rocpd.redact.texts import Pseudonyms
    >>> strict = Strict(Pseudonyms(), {})
    >>> strict.text("GPU"), strict.text("any words"), strict.name("hipMalloc"), strict.name("run.py(7): main")
    ('GPU', 'text-aaa', 'hipMalloc', 'text-aab(7): text-aac')
    >>> strict.value("[1, 2]"), strict.value("0x7f2a40000000"), strict.document('{"line": 5, "host": "node7"}')
    ('[1, 2]', '0x000000000001', '{"line": 5}')
    """

    is_strict = True

    def text(self, text: str) -> str:
        """Return a listed word, or the new name of a kernel or marker, else a pseudonym."""
        if (name := self._in_job.names.get(text, text)) != text:
            return name
        if text in self._in_job.names or Clue.TEXT in self.keep or self._stays(text):
            return super().text(text)
        return self._folded_name(text) or self.pseudonyms.of_form(Clue.TEXT, text)

    def name(self, text: str) -> str:
        """Return a name of a public interface, with pseudonyms for parts from the user."""
        if text not in self._in_job.names and not self._stays(text):
            for known in (*allowed().names, *allowed().instructions):
                if match := known.fullmatch(text):
                    return super().text(self._with_pseudonyms(match))
        return self.text(text)

    def argument(self, text: str) -> str:
        """Return the name of an argument if analyses read it, else a pseudonym."""
        return text if text in allowed().arguments else self.text(text)

    def tag(self, text: str) -> str:
        """Return a tag of metadata if it is listed, else a pseudonym."""
        return text if text in allowed().tags else self.text(text)

    def value(self, text: str) -> str:
        """Return numbers, with numbered addresses; other text is redacted as by `document` and `name`."""
        if _NUMBERS.fullmatch(text):
            return _POINTER.sub(self._pointer, text)
        return self._json(text, self.value) if text[:1] in ("{", "[") else self.name(text)

    def document(self, text: str) -> str:
        """Return a JSON document with the keys that may stay; other text is redacted as by `text`."""
        return self._json(text, self.name)

    def environment(self, text: str) -> str:
        """Return the JSON of a process's environment with the listed variables whose values are numbers; or redacted as
        for level `share` if variables are kept.
        """
        if Clue.VARIABLE in self.keep:
            return Redactor(self.pseudonyms, self.known, self.keep, self._rules).environment(text)
        values = {
            name: value
            for name, value in (json_object(text) or {}).items()
            if name in self.keep or (name in allowed().variables and _NUMBERS.fullmatch(str(value)))
        }
        return json.dumps(values, ensure_ascii=False)

    def _argument(self, argument: str) -> str:
        return self._new_name(Clue.ARGUMENT, argument)

    def _stays(self, text: str) -> bool:
        return text in allowed().words or text in self.pseudonyms.given

    def _pointer(self, match: re.Match[str]) -> str:
        if Clue.POINTER in self.keep:
            return match[0]
        return f"0x{self._new_name(Clue.POINTER, match[0]).rpartition('-')[2]:0>12}"

    def _folded_name(self, text: str) -> str:
        """Return the new name of a text that is a host, user or secret as a whole, in any case of letters."""
        known = self._folded.get(text.lower())
        return self._name(*known) if known else ""

    def _with_pseudonyms(self, match: re.Match[str]) -> str:
        parts, until = [], 0
        for group in range(1, match.re.groups + 1):
            start, end = match.span(group)
            if start >= until:
                parts += [match.string[until:start], self.text(match[group])]
                until = end
        return "".join([*parts, match.string[until:]])

    def _json(self, text: str, redacted: Callable[[str], str]) -> str:
        """Return a JSON document with redacted strings."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        return json.dumps(self._listed(content, "", redacted), ensure_ascii=False)

    def _listed(self, value: Any, key: str, redacted: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return redacted(value)
        if isinstance(value, list):
            return [self._listed(item, key, redacted) for item in value]
        if isinstance(value, dict):
            return {key: self._listed(item, key, redacted) for key, item in value.items() if _is_key(key)}
        if key in _TIMES and isinstance(value, int) and value > self._in_job.before > 0:
            return value - self._in_job.before
        return value if isinstance(value, bool) or value is None or abs(value) < _LARGEST else 0


def _is_key(key: str) -> bool:
    """Whether a key may stay; keys of counts are instructions."""
    return key in allowed().keys or any(known.fullmatch(key) for known in allowed().instructions)
