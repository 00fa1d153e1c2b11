"""Reads names of C++ functions: makes mangled names readable, and splits a name into scopes, function and template.

Good enough for people, not for a linker: parts that a mangled name gives only by reference are left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rocpd.schema.rules.kernel_names import without_kd

_BUILTIN = {
    "a": "signed char", "b": "bool", "c": "char", "d": "double", "f": "float", "h": "unsigned char", "i": "int",
    "j": "unsigned int", "l": "long", "m": "unsigned long", "n": "__int128", "s": "short", "t": "unsigned short",
    "v": "void", "w": "wchar_t", "x": "long", "y": "unsigned long", "Dh": "_Float16",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<length>\d+)|DF16(?P<bfloat>b)|DF16(?P<half>_)|L(?:[a-z]|_Z)(?P<value>n?\d+)E|(?P<reference>S[0-9A-Z]*_|St|T\d*_)"
    r"|(?P<open>[NIJL])|(?P<end>E)|(?P<qualifier>[KVRPO])|(?P<builtin>Dh|[abcdfhijlmnstvwxy])"
)
_VALUE = re.compile(r"(\d+)E")
_ANONYMOUS = ("(anonymous namespace)::", "<unnamed>::", "_GLOBAL__N_1::")
_NOISE = re.compile(
    r"\b(?:ROCPRIM|HIPCUB)_\d+_NS::|^std::enable_if<.*?>::type "
    r"|\((?:unsigned )?(?:int|long|bool)\)(?=-?\d)|\.intern\.\w+$"
)
_CLONE = re.compile(r" ?(?:\[clone [^\]]*\]|\(\.kd\))$")
_OPERATOR = r"\boperator ?(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?)(?: (?=<))?|\boperator (?=\w)"
_MARK = re.compile(rf"{_OPERATOR}|->|::|[][<>(){{}} ]")
_OPENING, _CLOSING = frozenset("<[({"), frozenset(">])}")
_LITERAL = re.compile(r"\b(\d+)(?:ul?l?|l)\b")


class Function(NamedTuple):
    """The parts of a function's name.

    Args:
        scopes: its namespaces and classes, the outermost first.
        name: name of the function alone.
        template: the text between its < and >.
    """

    scopes: tuple[str, ...]
    name: str
    template: str


def readable(name: str) -> str:
    """Return a name without `.kd` and anonymous namespaces; a mangled name as C++ writes it, without parameters.

    >>> readable("void (anonymous namespace)::f<128u>(int) [clone .kd]"), readable("_ZN2ck1fILi64EtEEvPKT_")
    ('void f<128>(int)', 'ck::f<64, unsigned short>')
    """
    name = _CLONE.sub("", without_kd(name))
    if name.startswith("_Z"):
        name = _unmangled(name)
    for noise in _ANONYMOUS:
        name = name.replace(noise, "")
    return _LITERAL.sub(r"\1", _NOISE.sub("", name)).replace("> >", ">>")


def take_apart(name: str) -> Function:
    """Return the parts of a name from `readable`; words without a signature or template are a name as a whole.

    >>> take_apart("void at::native::f<4, at::add<float>>(int)")
    Function(scopes=('at', 'native'), name='f', template='4, at::add<float>')
    >>> take_apart("bool operator<(A, B)").name, take_apart("fusion 12").name
    ('operator<', 'fusion 12')
    """
    start, depth, opened, closed = 0, 0, -1, -1
    scopes: list[str] = []
    has_words = False
    for mark in _MARK.finditer(name):
        position, text = mark.start(), mark[0]
        if depth:
            depth += 1 if text in _OPENING else -1 if text in _CLOSING else 0
            closed = position if not depth else closed
        elif text == "(" and position > start:
            return _function(scopes, name, (start, opened, closed), position)
        elif text in _OPENING:
            opened, depth = position, 1
        elif text in (" ", "::"):
            scopes = [*scopes, name[start : opened if opened >= start else position]] if text == "::" else []
            start, has_words = mark.end(), has_words or text == " "
    if has_words and opened < start:
        return Function((), name, "")
    return _function(scopes, name, (start, opened, closed), len(name))


def bare_name(name: str) -> str:
    """Return the name of a function alone: without return type, scopes, template and signature.

    >>> [bare_name(f"{name}.kd") for name in ("void at::native::f<4>(int)", "_ZN2ck1fILi64EEEvPKT_", "fusion 12")]
    ['f', 'f', 'fusion 12']
    """
    text = readable(name)
    return take_apart(text).name or text


def _function(scopes: list[str], name: str, marks: tuple[int, int, int], end: int) -> Function:
    """Return the function whose name starts, and whose template opens and closes, at these positions."""
    start, opened, closed = marks
    if opened < start:
        return Function(tuple(scopes), name[start:end], "")
    return Function(tuple(scopes), name[start:opened].rstrip(), name[opened + 1 : closed if closed > opened else end])


def _unmangled(name: str) -> str:
    """Return a mangled name, made readable up to its parameters, without back references; unknown forms stay."""
    text, position, opened = "", 2, [""]
    while position < len(name):
        if opened[-1] == "L" and (value := _VALUE.match(name, position)):
            text, position = f"{text}={value[1]}", value.end() - 1
        if (token := _TOKEN.match(name, position)) is None:
            break
        position = token.end()
        if length := token["length"]:
            text = _joined(text, name[position : position + int(length)], opened[-1])
            position += int(length)
        elif kind := token["open"]:
            text += "<" if kind == "I" else ", " if opened[-1] in ("I", "J") and not text.endswith(("<", ", ")) else ""
            if kind != "L" or opened[-1] in ("I", "J", "L"):  # else it says that the name is of one file
                opened.append(kind)
        elif token["end"] and len(opened) > 1:
            text += ">" if opened.pop() == "I" else ""
        elif word := _word(token):
            text = _joined(text, word, "I")
        if len(opened) == 1 and text and not name.startswith("I", position):
            break
    return text.rstrip("<, ") + ">" * opened.count("I") if text else name


def _word(token: re.Match[str]) -> str:
    if token["value"]:
        return token["value"].replace("n", "-")
    if token["bfloat"]:
        return "__bf16"
    return "_Float16" if token["half"] else _BUILTIN.get(token["builtin"] or "", "")


def _joined(text: str, word: str, within: str) -> str:
    """Add a word: after `::` in a nested name, after a comma in a template."""
    return text + word if not text or text.endswith(("<", ", ")) else f"{text}{'::' if within == 'N' else ', '}{word}"
