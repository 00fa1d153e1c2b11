"""The short name of a kernel, and its family, which stays when a tile or a parameter changes.

The rules are data, `data/short_names.toml`. Never decides what a kernel does, and is never used to match: categories,
filters and SQL see the full name. Names that are shown together are shortened together, so that no two look equal.
"""

from __future__ import annotations

import functools
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rocpd.base import frozen
from rocpd.base.identity import blake2b
from rocpd.facts.cxx import Function, readable, take_apart
from rocpd.table.cell import alike

_FIELD = re.compile(r"\[([^\[\]]*)\]|\{(\w+)\}")
_TOKEN = re.compile(r"\d+(?:x\d+)*|[A-Za-z]+(?:\d+(?:_\d+)*)?")
_TILE = re.compile(r"_?\d+x\d+.*|_+\d+$")
_TAIL = re.compile(r"_(?:[nt]{2,3}|[NT]{2,3}|half|float|double|b?fp?\d+|i\d+)$")
_NUMBERS = re.compile(r"(?:\b[A-Za-z][\w:]*=)?-?\b\d+\b(?:, )?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LAUNCHERS = {"kernel", "Kernel", "Kernel2", "device_kernel", "kentry", "operator()", "invoke", "run", "entry"}
_NOISE = frozenset(
    ("at", "gpu", "native", "c10", "void", "int", "const", "std", "unsigned", "instance", "char", "detail")
)
_FLAGS = frozenset(("true", "false"))
_DIGESTS = (2, 8, 32)  # bytes
_MOST_DIFFERENCES = 6
_LONGEST_ARGUMENTS = 24


class KernelName(NamedTuple):
    """The names of a kernel.

    Args:
        full: the name in the file.
        short: the name that people use.
        family: the part that stays when tiles, tuning parameters and numbers in the name change.
    """

    full: str
    short: str
    family: str


@functools.cache
def kernel_name(full: str) -> KernelName:
    """Return the names of a kernel: full, short, and its family.

    >>> kernel_name("triton_poi_fused_add_mul_3")
    KernelName(full='triton_poi_fused_add_mul_3', short='triton_poi add_mul 3', family='triton_poi add_mul')
    """
    text = readable(full)
    for rule in _table().rules:
        if names := rule.apply(text):
            return KernelName(full, *names)
    return KernelName(full, *_generic(text))


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return full name -> short name; no two are equal: the differences between alike names are added in brackets.

    Args:
        names: full names that are shown together.

    >>> list(short_names(["void f<64, 2>(int)", "void f<64, 4>(int)", "void g(int)"]).values())
    ['f<64, 2>', 'f<64, 4>', 'g']
    """
    short = {name: kernel_name(name).short for name in dict.fromkeys(names)}
    last = [partial(_digests, size=size) for size in _DIGESTS]
    steps: list[Callable[[Sequence[str]], list[str]]] = [_arguments, _differences, *last]
    for add in steps:
        for group in alike(sorted(short), short):
            short.update(zip(group, add(group), strict=True))
    return short


def _arguments(names: Sequence[str]) -> list[str]:
    """Return short names with the arguments of templates, where they are few; names made by a rule stay."""
    functions = [take_apart(readable(name)) for name in names]
    short = [kernel_name(name).short for name in names]
    if any(len(known.template) > _LONGEST_ARGUMENTS for known in functions) or short != [*map(_titled, functions)]:
        return short
    return [f"{_named(known)}<{known.template}>{_library(known)}" for known in functions]


def _differences(names: Sequence[str]) -> list[str]:
    """Return short names with the few words in which they differ: of the function and its template, else of all."""
    short = [kernel_name(name).short for name in names]
    words = _words([_without_parameters(name) for name in names])
    added = _chosen([column for column in words if _NOISE.isdisjoint(column)], len(names))
    if len(set(added)) < len(names):
        added = _chosen(_words(names), len(names))
    return [f"{said} [{text}]" if text else said for said, text in zip(short, added, strict=True)]


def _without_parameters(name: str) -> str:
    function = take_apart(readable(name))
    return f"{function.name}<{function.template}>" if function.template else name


def _chosen(words: Sequence[tuple[str, ...]], count: int) -> list[str]:
    """Return for each of `count` names the few words in which they differ; letters are preferred to numbers."""
    is_spelt = [any(word.isalpha() and word not in _FLAGS for word in column) for column in words]
    apart, chosen = [0] * count, set[int]()
    while len(chosen) < _MOST_DIFFERENCES and len(set(apart)) < count:
        gains = [len(set(zip(apart, column, strict=True))) for column in words]
        best = max(range(len(words)), key=lambda index: (gains[index], is_spelt[index]), default=None)
        if best is None or gains[best] == len(set(apart)):
            break
        chosen.add(best)
        numbers: dict[object, int] = {}
        apart = [numbers.setdefault(pair, len(numbers)) for pair in zip(apart, words[best], strict=True)]
    return [" ".join(filter(None, (words[index][row] for index in sorted(chosen)))) for row in range(count)]


def _words(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return columns of words that differ between names, by their place among all words, else among equal letters."""
    tokens = [_TOKEN.findall(name) for name in names]
    if len({len(row) for row in tokens}) == 1:
        columns = list(zip(*tokens, strict=True))
    else:
        keyed = [dict(_keyed(row)) for row in tokens]
        keys = dict.fromkeys(itertools.chain.from_iterable(keyed))
        columns = [tuple(row.get(key, "") for row in keyed) for key in keys]
    return [column for column in columns if len(set(column)) > 1]


def _keyed(tokens: Iterable[str]) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield ((letters, number of earlier tokens with these letters), token)."""
    seen: Counter[str] = Counter()
    for token in tokens:
        letters = token.rstrip("0123456789_x")
        yield (letters, seen[letters]), token
        seen[letters] += 1


def _digests(names: Sequence[str], size: int) -> list[str]:
    """Return short names with a digest of the full name: the last resort."""
    digests = [blake2b(name.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest() for name in names]
    return [f"{kernel_name(name).short} ~{digest}" for name, digest in zip(names, digests, strict=True)]


@frozen
class _Rule:
    """One rule of the file, as its head describes; an expression is compiled when a name is first tried on it."""

    match: str
    find: Mapping[str, Sequence[str]]
    short: str
    family: str
    types: Mapping[str, str]

    def apply(self, text: str) -> tuple[str, str] | None:
        """Return short name and family, None where the rule does not match the name."""
        if (match := re.search(self.match, text)) is None:
            return None
        fields: dict[str, str] = {str(number): group or "" for number, group in enumerate(match.groups(), 1)}
        for field, patterns in self.find.items():
            if fitting := next(filter(None, (re.search(pattern, text) for pattern in patterns)), None):
                fields[field] = self._said(field, "x".join(filter(None, fitting.groups())))
        return _filled(self.short, fields), _filled(self.family, fields)

    def _said(self, field: str, text: str) -> str:
        if field == "type":
            return self.types.get(text) or _type(text)
        if field == "op":
            return _CAMEL.sub("_", text).lower().strip("_")
        return text.replace("_", "") if field == "types" else text


class _Table(NamedTuple):
    rules: Sequence[_Rule]
    types: Mapping[str, str]
    libraries: Mapping[str, str]
    words: Mapping[str, str]


@functools.cache
def _table() -> _Table:
    content = tomllib.loads((Path(__file__).parent / "data" / "short_names.toml").read_text("utf-8"))
    return _Table([_rule(row) for row in content["rule"]], content["types"], content["libraries"], content["words"])


def _rule(row: Mapping[str, Any]) -> _Rule:
    find = {field: [texts] if isinstance(texts, str) else texts for field, texts in row.get("find", {}).items()}
    return _Rule(row["match"], find, row["short"], row["family"], row.get("types", {}))


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """Return a template with its fields filled in, without bracketed parts that have an empty field."""

    def fill(match: re.Match[str]) -> str:
        if match[2]:
            return fields.get(match[2], "")
        inside = _FIELD.findall(match[1])
        return _filled(match[1], fields) if all(fields.get(field) for _, field in inside) else ""

    return _FIELD.sub(fill, template)


def _type(text: str) -> str:
    """Return the usual name of a data type."""
    text = re.sub(r"\bconst\b|[*&]", "", text).strip()
    last = text.rsplit("::", 1)[-1]
    types = _table().types
    return types.get(text) or types.get(last, last)


def _generic(text: str) -> tuple[str, str]:
    """Return short name and family of a kernel that no rule matches."""
    function = take_apart(text)
    if not function.name:
        return text, text
    words, tail = _TILE.sub("", function.name), _TAIL.search(function.name)
    words = words + tail[0] if words and tail and words != function.name else words or function.name
    template = _NUMBERS.sub("", function.template).rstrip(", ")
    path = "::".join((*function.scopes, words))
    return _titled(function), f"{path}<{template}>" if template else path


def _titled(function: Function) -> str:
    known = _table().types
    parts = (part.rsplit("::", 1)[-1].strip() for part in re.split(r"[<>,]", function.template))
    types = [known[part] for part in parts if part in known and part != "bool"]
    return f"{_named(function)}{f' {types[0]}' if types else ''}{_library(function)}"


def _named(function: Function) -> str:
    name = function.name
    if name in _LAUNCHERS and function.scopes:
        name = f"{function.scopes[-1]}::{name}"
    for word, said in _table().words.items():
        name = name.replace(word, said)
    return name.removesuffix("_kernel") or name


def _library(function: Function) -> str:
    library = _table().libraries.get(function.scopes[0]) if function.scopes else None
    return f" ({library})" if library else ""
