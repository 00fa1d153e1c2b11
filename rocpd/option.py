"""Owns how an option is declared: once, beside the field that holds its value.

The command line makes its options, their help and completion from these declarations, wherever they stand; Python
callers use the dataclass. Imports nothing but the standard library, and never parses a word.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from rocpd.errors import UsageError


class Heading(enum.StrEnum):
    """Headings of help, in the order in which they stand there."""

    INPUTS = "Inputs"
    WHAT = "What"
    WINDOW = "Window"
    FILTERS = "Filters"
    OUTPUT = "Output"
    EXECUTION = "Execution"
    OTHER = "Other"


@dataclass(frozen=True)
class Option:
    """One option. In the `Annotated` type of a dataclass field, the field says its name, kind and default.

    Args:
        help: what it does, in one or two short sentences.
        flags: spellings; none: `--` and the name.
        metavar: what help shows for the value; none: made from `kind`.
        heading: of help, under which it stands.
        name: as in Python, `step_marker`.
        kind: type of a value: bool (a flag), int, float, str, Path, or a StrEnum whose members are the choices; str
            for what the field says.
        default: the value when nothing is given.
        several: whether it can be repeated; the value is a tuple.
        least: smallest number that makes sense; `most`: the largest.
        is_positional: whether the words without a flag are its values.
        is_required: whether the command needs it.
        environment: variable that gives the value when the command line doesn't.
        hidden_flags: further spellings that work and are not shown.
        complete: returns the known values, for completion by the shell.
        listing: returns the known values as help lists them.
        is_lenient: where nothing reads the option it is reported, not refused: AMD's command line takes it anywhere.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str = ""
    heading: Heading = Heading.WHAT
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
    listing: Callable[[], str] | None = None
    is_lenient: bool = False

    @property
    def flag(self) -> str:
        """The spelling for messages: the longest.

        >>> Option("", ("-j", "--jobs"), name="jobs").flag, Option("", name="step_marker").flag
        ('--jobs', '--step-marker')
        """
        return max(self.flags, key=len) if self.flags else f"--{self.name.replace('_', '-')}"


@functools.cache
def options_of(owner: type) -> tuple[Option, ...]:
    """Return the options that the fields of a dataclass declare, in their order."""
    hints = typing.get_type_hints(owner, include_extras=True)
    declared = ((field, _declaration(hints[field.name])) for field in dataclasses.fields(owner))
    return tuple(_completed(field, hints[field.name], option) for field, option in declared if option)


def _declaration(hint: object) -> Option | None:
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Option)), None)


def _completed(field: dataclasses.Field[object], hint: object, option: Option) -> Option:
    """Return an option with the name, kind and default of its field."""
    (kind, *_) = typing.get_args(hint)
    kinds = [one for one in _members(kind) if one is not types.NoneType]
    several = typing.get_origin(kinds[0]) is tuple
    kind = typing.get_args(kinds[0])[0] if several else kinds[0]
    default = None if field.default is dataclasses.MISSING else field.default
    kind = kind if option.kind is str else option.kind
    return dataclasses.replace(option, name=field.name, kind=kind, default=default, several=several)


def _members(kind: object) -> tuple[typing.Any, ...]:
    is_union = isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
    return typing.get_args(kind) if is_union else (kind,)


Member = TypeVar("Member", bound=enum.StrEnum)


def member(choices: type[Member], name: str, word: str) -> Member:
    """Return the choice that a word names.

    Raises:
        UsageError: none is called so; `name` is that of the option.
    """
    try:
        return choices(word)
    except ValueError as error:
        raise UsageError(f"{name} {word}: unknown", f"one of {', '.join(choices)}") from error
