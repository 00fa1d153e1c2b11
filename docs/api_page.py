"""Writes docs/api.md: every public name of the package, with its signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

_SECTION = re.compile(r"^(Args|Attributes|Options|Returns|Raises):$")
_LONG_DEFAULT = re.compile(r" \(default: .{13,}\)$")
"""An expression, which Markdown may take for HTML; the help of the command line leaves it out, too."""
_ITEM = re.compile(r"^    (\*{0,2}[\w, .`|]+?): (.*)$")

_HEAD = """# Python

`import rocpd` is quick: names are imported when first used. This page is generated from the docstrings.
"""


def api_page() -> str:
    """Return docs/api.md."""
    import rocpd

    names = [name for name in rocpd.__all__ if not name.startswith("_")]
    functions = [name for name in names if not inspect.isclass(getattr(rocpd, name))]
    classes = sorted((name for name in names if name not in functions), key=lambda name: (_rank_of(name), name))
    parts = [_HEAD]
    for name in functions:
        parts.append(f"\n## rocpd.{name}\n\n{_signature(name, getattr(rocpd, name))}\n{_text(getattr(rocpd, name))}\n")
    for name in classes:
        parts += _class(name, getattr(rocpd, name))
    return "".join(parts)


def _rank_of(name: str) -> int:
    """What people use first comes first; errors come last."""
    order = ("Session", "Result", "Window", "Filters")
    return order.index(name) if name in order else len(order)


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"\n## rocpd.{name}\n\n"
    if issubclass(kind, Exception) or hasattr(kind, "__dataclass_fields__"):
        yield f"{_signature(name, kind)}\n"
    yield f"{_text(kind)}\n"
    if issubclass(kind, Exception):
        return
    for member, value in _members(kind):
        if isinstance(value, property) or not callable(value):
            yield f"\n### {name}.{member}\n\n{_text(value)}\n"
        else:
            yield f"\n### {name}.{member}\n\n{_signature(member, value)}\n{_text(value)}\n"


def _members(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties of a class, those of its bases first."""
    seen: dict[str, object] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.startswith("rocpd"):
            seen |= {member: value for member, value in vars(base).items() if not member.startswith("_")}
    for member, value in seen.items():
        if (callable(value) or isinstance(value, property) or hasattr(value, "func")) and inspect.getdoc(value):
            yield member, value


def _signature(name: str, value: object) -> str:
    signature = inspect.signature(value)  # type: ignore[arg-type]
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    text = f"{name}{signature.replace(parameters=parameters)}".replace("'", "")
    text = re.sub(r" = <(\w+)\.\w+: ([^>]+)>", r" = \2", text)
    text = re.sub(r"= Limits\([^)]*\)", "= None", text)
    if len(text) > 100:
        text = _wrapped(name, text)
    return f"```python\n{text}\n```\n"


def _wrapped(name: str, text: str) -> str:
    """Return a signature with one parameter a line."""
    inside, _, returned = text.removeprefix(f"{name}(").rpartition(")")
    lines, depth, start = [], 0, 0
    for position, char in enumerate(inside):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0 and inside[position + 1 : position + 2] == " ":  # a default may hold others
            lines.append(inside[start:position].strip())
            start = position + 1
    lines.append(inside[start:].strip())
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines if line) + f"){returned}"


def _text(value: object) -> str:
    """Return a docstring as Markdown: its sections become lists, its examples code."""
    out: list[str] = []
    for paragraph in (inspect.getdoc(value) or "").split("\n\n"):
        first, *rest = paragraph.splitlines() or [""]
        if first.startswith(">>> "):
            code = paragraph.replace("# doctest: +SKIP", "")
            out.append("\n".join(["```python", *(line.rstrip() for line in code.splitlines()), "```"]))
        elif _SECTION.match(first):
            out += [f"**{first[:-1]}**", "\n".join(map(_item, rest))]
        else:
            out.append(paragraph)
    return "\n\n".join(out)


def _item(line: str) -> str:
    """Return a line of a section: an argument or error in a list, or what goes on from the line before."""
    item = _ITEM.match(_LONG_DEFAULT.sub("", line))
    return f"- `{item[1]}`: {item[2]}" if item else f"  {line.strip()}"
