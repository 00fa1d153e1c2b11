"""Declares an option once, as the field that holds its value.

The command line makes its options, their help and completion from these declarations in any module; Python callers use
the dataclass. Never parses a word.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import re
import shlex
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from rocpd.base import UsageError, frozen


class Heading(enum.StrEnum):
    """Headings of help, in their order."""

    INPUTS = "Inputs"
    WHAT = "What"
    LAYOUT = "Layout"
    TIMING = "Clocks and timing"
    PLANTED = "Planted facts"
    LIVE = "In real time"
    WINDOW = "Window"
    FILTERS = "Filters"
    OUTPUT = "Output"
    EXECUTION = "Execution"
    AMD = "AMD's spellings"
    OTHER = "Other"


@frozen
class Option:
    """One option. If a dataclass declares it by `declare`, its field gives name, kind and default.

    Args:
        help: its effect, in one or two short sentences.
        metavar: name of the value in help; empty: made from `kind`.
        flags: spellings; empty: `--` and the name.
        heading: heading in help; None: the `HEADING` of the class that declares the field, else "What".
        name: its name in Python, such as `step_marker`.
        kind: type of a value: bool (a flag), int, float, str, Path, or a StrEnum whose members are the choices; str
            leaves the type to the field.
        default: the value when nothing is given.
        several: whether it can be repeated; the value is a tuple.
        least: smallest number that makes sense; `most`: the largest.
        is_positional: whether the words without a flag are its values.
        is_required: whether the command needs it.
        environment: variable that gives the value when the command line doesn't.
        hidden_flags: further spellings that work but are not shown.
        complete: returns the known values, for completion by the shell.
        complete_from: name of a function of `rocpd.cli.completion` that reads its values from the given files.
        listing: returns the text that lists the known values in help.
        is_plain: whether people need it so often that `--help` shows it; `--help-all` shows every option.
        is_lenient: an option without effect is reported, not refused, as AMD's command line accepts it anywhere.
    """

    help: str
    metavar: str = ""
    flags: tuple[str, ...] = ()
    heading: Heading | None = None
    name: str = ""
    kind: type = str
    default: object = None
    several: bool = False
    least: float | None = None
    most: float | None = None
    is_positional: bool = False
    is_required: bool = False
    environment: str = ""
    hidden_flags: tuple[str, ...] = ()
    complete: Callable[[], Iterable[str]] | None = None
    complete_from: str = ""
    listing: Callable[[], str] | None = None
    is_plain: bool = False
    is_lenient: bool = False

    @property
    def flag(self) -> str:
        """The spelling for messages: the longest.

        >>> Option("", flags=("-j", "--jobs"), name="jobs").flag, Option("", name="step_marker").flag
        ('--jobs', '--step-marker')
        """
        return max(self.flags, key=len) if self.flags else f"--{self.name.replace('_', '-')}"


Value = TypeVar("Value")
Said = ParamSpec("Said")
REQUIRED: Any = dataclasses.MISSING
"""The default of options without a default."""
_OPTION = "option"


def field_of(default: Value, option: Option) -> Value:
    """Return the field of a dataclass that holds the value of an option."""
    return dataclasses.field(default=default, metadata={_OPTION: option})


def _declaring(make: Callable[Said, Option]) -> Callable[Concatenate[Value, Said], Value]:
    def field(default: Value, /, *said: Said.args, **named: Said.kwargs) -> Value:
        return field_of(default, make(*said, **named))

    return field


declare = _declaring(Option)
"""Returns the field of a dataclass that holds the value of an option: its default, then the arguments of `Option`."""

plain = functools.partial(declare, is_plain=True)
"""As `declare`, for an option that people need often."""


def spelt(option: Option, value: object) -> Iterator[str]:
    """Yield the words of an option on a command line; nothing if it has its default.

    >>> list(spelt(Option("", name="step_marker"), "step [0-9]+"))
    ['--step-marker', "'step [0-9]+'"]
    >>> list(spelt(Option("", name="clip", kind=bool), True))
    ['--clip']
    """
    if value == option.default or value is None or value == ():
        return
    for each in value if isinstance(value, tuple) else (value,):
        yield option.flag
        if option.kind is not bool:
            yield shlex.quote(str(each))


@functools.cache
def options_of(owner: type) -> tuple[Option, ...]:
    """Return the options that the fields of a dataclass declare, in order."""
    hints = typing.get_type_hints(owner)
    headings = {
        name: getattr(base, "HEADING", Heading.WHAT)
        for base in reversed(owner.__mro__)
        for name in inspect.get_annotations(base)
    }
    return tuple(
        _completed(field, hints[field.name], option, option.heading or headings[field.name])
        for field in dataclasses.fields(owner)
        if (option := field.metadata.get(_OPTION))
    )


def _completed(field: dataclasses.Field[object], hint: Any, option: Option, heading: Heading) -> Option:
    """Return an option with the name, kind and default of its field."""
    (kind, *_) = [kind for kind in _members(hint) if kind is not types.NoneType]
    several = typing.get_origin(kind) is tuple
    kind = typing.get_args(kind)[0] if several else kind
    kind = kind if option.kind is str else option.kind
    default = None if field.default is dataclasses.MISSING else field.default
    return dataclasses.replace(option, name=field.name, kind=kind, default=default, several=several, heading=heading)


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


Member = TypeVar("Member", bound=enum.StrEnum)


def member(choices: type[Member], name: str, word: str) -> Member:
    """Return the choice that a word names.

    Raises:
        UsageError: no choice has that name; `name`: the option, for the message.
    """
    try:
        return choices(word)
    except ValueError as error:
        raise UsageError(f"{name} {word}: unknown", f"one of {', '.join(choices)}") from error


def regular_expression(text: str, option: str) -> re.Pattern[str]:
    """Compile a regular expression that a user gave.

    Raises:
        UsageError: the text is no regular expression; the message names the option.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # `[[` may change its meaning in a later Python
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{option} {text}: not a regular expression: {error}") from error


def typed(option: Option, value: Any) -> Any:
    """Return a Python caller's value of an option, converted to the type of the option.

    Words become choices or paths; several values become a tuple.

    >>> typed(Option("", name="depth", kind=int), 3), typed(Option("", name="views", several=True), ["kernels"])
    (3, ('kernels',))

    Raises:
        UsageError: the value has another type than the option, or is too small or too large.
    """
    if value is None and option.default is None:
        return None
    if option.several:
        each = dataclasses.replace(option, several=False)
        return tuple(typed(each, item) for item in ([value] if isinstance(value, str) else value))
    if issubclass(option.kind, enum.StrEnum):
        return member(option.kind, option.name, str(value))
    if option.kind is Path and isinstance(value, str):
        return Path(value)
    kind: Any = (int, float) if option.kind is float else option.kind
    if not isinstance(value, kind):
        raise UsageError(f"{option.name} {value!r}: not of type {option.kind.__name__}")
    if option.least is not None and value < option.least:
        number = "whole number" if option.kind is int else "number"
        raise UsageError(f"{option.name} {value}: not a {number} of at least {option.least}")
    if option.most is not None and value > option.most:
        raise UsageError(f"{option.name} {value}: larger than {option.most}")
    return value
