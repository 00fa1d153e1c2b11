"""Owns making a click command of a function: its parameters are dataclasses whose fields declare options.

What a command looks like on the screen is up to `help`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from rocpd import entries
from rocpd.cli.help import HelpfulCommand
from rocpd.entries import fields_of
from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.option import Heading, Option, options_of

Function: TypeAlias = Callable[..., int | None]
Marked = TypeVar("Marked", bound=Function)

VERBOSE = Option(
    "Show tracebacks of errors.",
    flags=("-v", "--verbose"),
    heading=Heading.OTHER,
    name="verbose",
    kind=bool,
    default=False,
)


@frozen
class Asked:
    """The options that formats and analyses declare, as the command line has them.

    Args:
        values: name -> value, defaults included.
        given: names of those that stand on the command line.
        taken: names of those that the command could not take, because an option of its own is called so.
    """

    values: Mapping[str, object]
    given: tuple[str, ...]
    taken: frozenset[str] = frozenset()

    def refuse_taken(self, entries: Mapping[str, Sequence[Option]]) -> None:
        """Refuse entries, by name, that were asked for and whose options the command could not take.

        Raises:
            UsageError: one of them; it names the entry point.
        """
        for name, options in entries.items():
            for option in options:
                if option.name in self.taken:
                    raise UsageError(
                        f"{name}: its option {option.flag} is an option of the command itself",
                        f"the package with the entry point {name} has to name it otherwise",
                    )

    def fields(self, owner: type) -> dict[str, Any]:
        """Return the values that are fields of a dataclass; what others declare goes into its field `further`."""
        return fields_of(owner, self.values)


def also_takes(options: Callable[[], Iterable[Option]]) -> Callable[[Marked], Marked]:
    """Add the options that `options` returns when the command runs; it takes them as a parameter of type `Asked`."""

    def mark(command: Marked) -> Marked:
        command.declared_elsewhere = options  # type: ignore[attr-defined]
        return command

    return mark


def command_of(function: Function, name: str) -> click.Command:
    """Return the click command of a function."""
    groups = {name: kind for name, kind in typing.get_type_hints(function).items() if name != "return"}
    options = [option for kind in groups.values() if kind is not Asked for option in options_of(kind)]
    declared = list(getattr(function, "declared_elsewhere", tuple)())
    shared = [option for option in declared if any(_is_same(option, each) for each in options)]
    words = {word for option in (*options, VERBOSE) for word in _words(option)}
    elsewhere = [option for option in declared if words.isdisjoint(_words(option))]
    taken = frozenset(option.name for option in declared if option not in (*elsewhere, *shared))
    options += [*elsewhere, VERBOSE]
    elsewhere += shared

    def run(**values: Any) -> int | None:
        source = click.get_current_context().get_parameter_source
        given = tuple(o.name for o in elsewhere if source(o.name) is ParameterSource.COMMANDLINE)
        asked = Asked({option.name: values[option.name] for option in elsewhere}, given, taken)
        return function(**{name: asked if kind is Asked else _made(kind, values) for name, kind in groups.items()})

    return HelpfulCommand(name, run, [_parameter(option) for option in options], function.__doc__ or "", options)


def _is_same(option: Option, own: Option) -> bool:
    """Whether an option is one that the command declares itself; help may say more of it."""
    return option.name == own.name and replace(option, help=own.help, heading=own.heading) == own


def _words(option: Option) -> tuple[str, ...]:
    """Return what must not be called like that of another option of a command."""
    return option.name, option.flag, *option.flags, *option.hidden_flags


def _made(kind: type, values: Mapping[str, Any]) -> object:
    return kind(**{option.name: values[option.name] for option in options_of(kind)})


def _parameter(option: Option) -> click.Parameter:
    complete = _completion(option) if option.complete or option.complete_from else None
    if option.is_positional:
        return click.Argument(
            [option.name],
            type=_type(option),
            nargs=-1 if option.several else 1,
            required=option.is_required,
            metavar=option.metavar,
            shell_complete=complete,
        )
    return click.Option(
        [option.name, *(option.flags or (option.flag,)), *option.hidden_flags],
        type=None if option.kind is bool else _type(option),
        is_flag=option.kind is bool,
        multiple=option.several,
        default=option.default,
        required=option.is_required,
        envvar=option.environment or None,
        shell_complete=complete,
    )


def _type(option: Option) -> click.ParamType[Any]:
    if issubclass(option.kind, StrEnum):
        return _Members(option.kind)
    if option.kind is int:
        return click.IntRange(option.least, option.most)  # type: ignore[arg-type]
    if option.kind is float:
        return click.FloatRange(option.least, option.most)
    if option.kind is Path:
        return click.Path(path_type=Path)
    return click.STRING


class _Members(click.Choice[str]):
    """The members of an enum, in any case of letters; a member may have hidden aliases (`_missing_`)."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__([member.value for member in kind], case_sensitive=False)
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._kind(str(value).lower())
        except ValueError:
            near = entries.closest(str(value), self.choices)
            if near and param:
                raise UsageError(f"{param.opts[-1]} {value}: unknown", f"did you mean {' or '.join(near)}?") from None
            return super().convert(value, param, ctx)


def _completion(option: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Complete the known values; files too where the words without a flag are completed."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = [*option.complete()] if option.complete else []
        if option.complete_from:
            given = [context.params.get(name) or () for name in ("named", "words")]
            known += option.complete_from([word for words in (*given, context.args) for word in words])
        words = [CompletionItem(word) for word in known if word.lstrip("'\"").startswith(incomplete.lstrip("'\""))]
        files = [CompletionItem(incomplete, type="file")] if isinstance(parameter, click.Argument) else []
        return [*words, *files]

    return complete
