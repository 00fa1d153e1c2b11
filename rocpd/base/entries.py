"""The base of all tables of contents: finds an entry by name, loads it, adds entries of other packages.

Formats of traces, formats of tables, and analyses are entries. Never imports an entry before it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from rocpd.base import RocpdError, UsageError
from rocpd.base.option import Option, options_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Entry = TypeVar("Entry")
Method = TypeVar("Method", bound=Callable[..., object])


class HasFurther(Protocol):
    """A dataclass of options with a field for options of other packages."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def further(self) -> Mapping[str, object]:
        """Values of options that rocpd itself doesn't define, by name."""


Fields = TypeVar("Fields", bound=HasFurther)


def load(home: str, what: str, kind: type[RocpdError] = RocpdError) -> Any:
    """Import the attribute that `module:attribute` names.

    Args:
        home: the module and its attribute.
        what: name of its entry, for the message.
        kind: class of the error.

    Raises:
        RocpdError: an error of class `kind`: the module can't be imported, or has no such attribute.
    """
    import importlib

    module, _, attribute = home.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise kind(f"{what}: {home} cannot be loaded: {reason}", "check the package that offers it") from error


def added(group: str, kind: type[Entry], plain: Callable[[str, str, str], Entry]) -> Iterator[tuple[str, Entry]]:
    """Yield the name and entry of each entry point of a group.

    Args:
        group: group of entry points.
        kind: class of the entries; an entry point may name an object of it.
        plain: makes an entry of (name, home, package) if the entry point names a function, or can't be loaded yet.
    """
    for point in points(group):
        try:
            entry = load(point.value, point.name)
        except RocpdError:
            entry = None
        if isinstance(entry, kind):
            yield point.name, entry
        else:
            yield point.name, plain(point.name, point.value, point.dist.name if point.dist else point.value)


def points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group in all installed packages.

    `importlib.metadata` takes 20 ms to import and 5 ms to read all packages: it is asked only if a package may have
    such entry points.
    """
    if not _may_be_declared(group):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _may_be_declared(group: str) -> bool:
    """Whether an installed package declares entry points of a group, or may do so in a place unknown here."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    declared = (_declared_in(place, _time_of(place)) for place in sys.path)
    return any(text is None or b"[" + group.encode() + b"]" in text for text in declared)


def _time_of(place: str) -> int:
    """Return the time of the last change of a folder: packages may be installed while the process runs [ns]."""
    with contextlib.suppress(OSError):
        return Path(place).stat().st_mtime_ns
    return 0


@functools.cache
def _declared_in(place: str, _time: int) -> bytes | None:
    """Return all entry points that packages in a folder of `sys.path` declare; None for an archive.

    Packages are recognised as by `importlib.metadata`: by `*.dist-info` or `*.egg-info`.
    """
    try:
        with os.scandir(place or ".") as inside:
            packages = [entry.path for entry in inside if entry.name.lower().endswith((".dist-info", "egg-info"))]
    except NotADirectoryError:
        return None
    except OSError:
        return b""
    texts = []
    for package in packages:
        name = f"{package}/entry_points.txt"
        with contextlib.suppress(OSError), open(name, "rb", buffering=0) as text:  # noqa: PTH123 - Path costs as much
            texts.append(text.read())
    return b"\n".join(texts)


def closest(word: str, known: Iterable[str]) -> list[str]:
    """Return up to three known words similar to a misspelled one, the nearest first."""
    import difflib

    return difflib.get_close_matches(word.lower().replace("_", "-"), list(known), n=3, cutoff=0.65)


def near(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint with similar known words, or `otherwise` if there are none.

    >>> near("kernls", ["kernels", "gaps"], "`rocpd summary --list` shows all")
    'did you mean kernels?'
    """
    words = closest(word, known)
    return f"did you mean {' or '.join(words)}?" if words else otherwise


def declared(options: Iterable[str | Option], house: type) -> tuple[Option, ...]:
    """Return the options of an entry: names are fields of the dataclass `house`.

    Raises:
        RocpdError: a name is no such field.
    """
    known = {option.name: option for option in options_of(house)}
    if unknown := [option for option in options if isinstance(option, str) and option not in known]:
        raise RocpdError(f"{house.__name__} has no option {unknown[0]}", f"one of {', '.join(known)}")
    return tuple(known[option] if isinstance(option, str) else option for option in options)


def fields_of(house: type, values: Mapping[str, object]) -> dict[str, Any]:
    """Return values of options as fields of the dataclass `house`; options of other packages go to `further`."""
    ours = {option.name for option in options_of(house)}
    fields: dict[str, Any] = {name: value for name, value in values.items() if name in ours}
    return {**fields, "further": {name: value for name, value in values.items() if name not in ours}}


def with_defaults(options: Fields, reads: Iterable[Option]) -> Fields:
    """Return options, a dataclass with a field `further`, with a value for each option of another package."""
    ours = {option.name for option in options_of(type(options))}
    defaults = {option.name: option.default for option in reads if option.name not in ours}
    return dataclasses.replace(options, further={**defaults, **options.further})


def lists_options(entries: Mapping[str, Sequence[Option]]) -> Callable[[Method], Method]:
    """List the options of all entries in the docstring of a function that takes them as keywords."""
    margin = "" if sys.version_info >= (3, 13) else " " * 8  # since then Python strips the indentation of docstrings
    lines = [
        f"{margin}    {option.name}: {option.help}"
        + ("" if option.default in (None, False, ()) else f" (default: {option.default})")
        for option in shown(entries)
    ]

    def mark(function: Method) -> Method:
        if function.__doc__:
            function.__doc__ = "\n".join([function.__doc__.rstrip(), "", f"{margin}Options:", *lines, margin])
        return function

    return mark


def readers_of(entries: Mapping[str, Sequence[Option]]) -> dict[str, tuple[Option, tuple[str, ...]]]:
    """Return name -> (option, names of the entries that read it)."""
    by_name: dict[str, tuple[Option, tuple[str, ...]]] = {}
    for name, options in entries.items():
        for option in options:
            _, readers = by_name.get(option.name, (option, ()))
            by_name[option.name] = (option, (*readers, name))
    return by_name


def shown(entries: Mapping[str, Sequence[Option]]) -> list[Option]:
    """Return the options of all entries, each once; its help names the entries that read it, unless all do."""
    options = []
    for option, readers in readers_of(entries).values():
        names = "" if len(readers) == len(entries) else f" [{', '.join(readers)}]"
        options.append(dataclasses.replace(option, help=option.help + names))
    return options


def unread(
    given: Iterable[str], asked: Mapping[str, Sequence[Option]], known: Mapping[str, Sequence[Option]]
) -> list[str]:
    """Return the flags of lenient options that no requested entry reads.

    Args:
        given: names of options.
        asked: requested entries, with the options that they read.
        known: all entries.

    Raises:
        UsageError: no requested entry reads an option, and it is not lenient.
    """
    readers = readers_of(known)
    without_effect = []
    for name in given:
        if any(option.name == name for options in asked.values() for option in options):
            continue
        if name not in readers:
            raise no_option(name, asked)
        option, names = readers[name]
        if not option.is_lenient:
            raise UsageError(f"{option.flag} concerns none of {', '.join(asked)}", f"it is for {', '.join(names)}")
        without_effect.append(option.flag)
    return without_effect


def no_option(name: str, asked: Mapping[str, Sequence[Option]]) -> UsageError:
    """Return the error for an option that no entry of `asked` has; it names their options."""
    options = dict.fromkeys(option.name for options in asked.values() for option in options)
    return UsageError(f"{', '.join(asked)} has no option {name}", f"it has {', '.join(options) or 'none of its own'}")
