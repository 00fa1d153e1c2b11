"""What stands in the texts that RPD keeps of calls and markers: arguments and facts of PyTorch's operators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Argument: TypeAlias = tuple[str, str, str]
"""Type, name and value."""

_OPERATOR = re.compile(
    r"(?P<name>.*?)(?:, seq = (?P<seq>-?\d+))?(?:, op_id = (?P<op_id>\d+))?"
    r"(?:, sizes = (?P<sizes>.*?))?(?:, input_op_ids = (?P<input_op_ids>.*))?",
    re.DOTALL,
)
_NAMES = {"seq": "Sequence number", "sizes": "Input Dims"}
"""Facts of an operator, as PyTorch's own traces call them."""


def arguments_of(text: str) -> Sequence[Argument] | None:
    """Return the arguments in the text of a call; None: it holds no arguments.

    >>> arguments_of("graphExec = 0x10 | stream = 0x0")
    [('pointer', 'graphExec', '0x10'), ('pointer', 'stream', '0x0')]
    >>> arguments_of('{"count": 3}'), arguments_of("MIOpenDriver conv")
    ([('int', 'count', '3')], None)
    """
    if text.startswith("{"):
        try:
            content = json.loads(text)
        except ValueError:
            return None
        values = ((name, v if isinstance(v, str) else json.dumps(v)) for name, v in content.items())
        return [(_kind(value), name, value) for name, value in values]
    pairs = [part.partition("=") for part in text.split("|")]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        return None
    return [(_kind(value.strip()), name.strip(), value.strip()) for name, _, value in pairs]


def _kind(value: str) -> str:
    if value.startswith("0x"):
        return "pointer"
    return "int" if value.removeprefix("-").isdecimal() else ""


def operator_in(text: str) -> tuple[str, Sequence[Argument]] | None:
    """Return name and facts of an operator in the text of a marker, as `emit_nvtx` writes it; None: it is none.

    >>> operator_in("aten::add, seq = 5, op_id = 7")
    ('aten::add', [('int', 'Sequence number', '5'), ('int', 'op_id', '7')])
    >>> operator_in("step 1")
    """
    match = _OPERATOR.fullmatch(text) if ", " in text else None
    if match is None or not any(match.group(*_FACTS)):
        return None
    return match["name"], list(facts_of_operator(*match.group(*_FACTS)))


_FACTS = ("seq", "op_id", "sizes", "input_op_ids")


def facts_of_operator(*values: object) -> Iterator[Argument]:
    """Yield the facts of an operator, of seq, op_id, sizes and input_op_ids those that are known."""
    for name, value in zip(_FACTS, values, strict=True):
        if value not in (None, "", -1, "-1"):
            yield "int" if name in ("seq", "op_id") else "", _NAMES.get(name, name), str(value)


def facts_in_json(text: str) -> Sequence[Argument]:
    """Return the facts of an operator that RPD's schema 3 keeps as JSON."""
    renamed = ((kind, _NAMES.get(name, name), value) for kind, name, value in arguments_of(text) or ())
    return [fact for fact in renamed if fact[1:] != ("Sequence number", "-1")]


def whole(text: object) -> int | None:
    """Return a whole number that RPD holds as text, such as a pointer or a size; None: it holds none.

    >>> whole("0x10"), whole(16), whole(""), whole("17")
    (16, 16, None, 17)
    """
    if isinstance(text, int):
        return text
    try:
        number = int(str(text), 0)
    except ValueError:
        return None
    return number - (1 << 64) if number >= 1 << 63 else number
