"""The list of commands. The module of a command is imported when the command runs.

Commands are declared with typer: the fields of a command's groups of options become parameters that typer reads. Help
shows examples first and options under headings, in at most 100 columns.
"""

from __future__ import annotations

import contextlib
import glob
import inspect
import keyword
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from rocpd.base import UsageError, entries, frozen
from rocpd.base.entries import fields_of
from rocpd.base.evidence import Evidence
from rocpd.base.option import Heading, Option, options_of
from rocpd.base.output import check_not_stdout
from rocpd.base.version import __version__
from rocpd.cli import argv

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter, Parameter


SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_LONGEST_DEFAULT = 12
_METAVARS: dict[type, str] = {int: "N", float: "X", Path: "FILE", str: "TEXT"}
_EXAMPLES = "Examples:\n"
_ALL = "--help-all"
_HOW = "by subject, and further remarks"
_FIRST_PARAGRAPHS = 2  # of a docstring, in the help that fits a screen


class HelpfulCommand(TyperCommand):
    """A command whose help fits a screen: `--help` shows the options that are declared plain, `--help-all` every one.

    Attributes:
        plain: names of the plain options.
    """

    plain: frozenset[str] = frozenset()

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the words after the name in the line of usage."""
        return ["[OPTIONS]", *(each.metavar or "" for each in self.params if isinstance(each, TyperArgument))]

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help that fits a screen."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter, _FIRST_PARAGRAPHS)
        shown = list(rows_of(each for each in self.params if each.name in self.plain))
        rows = [row for heading in Heading for above, row in shown if above == heading]
        with formatter.section("Options"):
            formatter.write_dl([*rows, (_ALL, f"All {len(list(rows_of(self.params)))} options, {_HOW}.")])

    def format_whole_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the whole help: every option, under headings."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter)
        rows = list(rows_of(self.get_params(ctx)))
        for heading in Heading:
            if here := [row for above, row in rows if above == heading]:
                with formatter.section(heading):
                    formatter.write_dl(here)


def _whole_help_option(command: HelpfulCommand) -> TyperOption:
    """Return the option that shows the whole help of a command."""

    def show(context: Context, _option: Parameter, is_wanted: bool) -> None:
        if is_wanted and not context.resilient_parsing:
            formatter = context.make_formatter()
            command.format_whole_help(context, formatter)
            typer.echo(formatter.getvalue().rstrip("\n"))
            context.exit()

    help = "Show every option, and exit."
    return TyperOption(
        param_decls=[_ALL], is_flag=True, is_eager=True, expose_value=False, callback=show, help=help, default=False
    )


def write_doc(doc: str, formatter: HelpFormatter, paragraphs: int | None = None) -> None:
    """Write a docstring: its first paragraph, its examples, and then the rest, up to `paragraphs` in all."""
    text, _, examples = inspect.cleandoc(doc).partition(_EXAMPLES)
    first, *rest = text.strip().split("\n\n")[:paragraphs]
    _write_paragraph(first, formatter)
    if examples:
        formatter.write(f"\n{_EXAMPLES}")
        for line in inspect.cleandoc(examples).splitlines():
            formatter.write(f"  {line}\n")
    for paragraph in rest:
        _write_paragraph(paragraph, formatter)


def _write_paragraph(text: str, formatter: HelpFormatter) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(text.split()))


def rows_of(parameters: Iterable[Parameter]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the heading of each option, and its row: spelling and help."""
    for each in parameters:
        if isinstance(each, TyperArgument | TyperOption) and not each.hidden:
            spelt = [] if isinstance(each, TyperArgument) else sorted(each.opts, key=lambda flag: flag.startswith("--"))
            row = " ".join(filter(None, (", ".join(spelt), each.metavar))), each.help or ""
            yield each.rich_help_panel or Heading.OTHER, row


def metavar_of(option: Option) -> str | None:
    """Return the placeholder that help shows for the value of an option; None without a value."""
    if option.metavar or option.kind is bool:
        return option.metavar or None
    return "|".join(option.kind) if issubclass(option.kind, StrEnum) else _METAVARS.get(option.kind, "VALUE")


def text_of(option: Option) -> str:
    """Return the help of an option: its text, its possible values, a short default, the variable."""
    if option.is_positional:
        return option.help
    listing = f" {option.listing()}." if option.listing else ""
    default = "" if option.default in (None, False, ()) else str(option.default)
    added = [f"default: {default}"] if 0 < len(default) <= _LONGEST_DEFAULT else []
    added += [f"or ${option.environment}"] if option.environment else []
    added += ["required"] if option.is_required else []
    return option.help + listing + (f" ({', '.join(added)})" if added else "")


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
    """The options that formats and analyses declare, as the command line sets them.

    Args:
        values: name -> value, defaults included.
        given: names of the options on the command line.
        taken: names of the options that the command could not take, because it has another option of this name.
    """

    values: Mapping[str, object]
    given: tuple[str, ...]
    taken: frozenset[str] = frozenset()

    def refuse_taken(self, entries: Mapping[str, Sequence[Option]]) -> None:
        """Refuse the entries, by name, with options that the command could not take.

        Raises:
            UsageError: there is such an entry; the message names its entry point.
        """
        for name, options in entries.items():
            for option in options:
                if option.name in self.taken:
                    raise UsageError(
                        f"{name}: its option {option.flag} is an option of the command itself",
                        f"the package with the entry point {name} has to name it otherwise",
                    )

    def fields(self, owner: type) -> dict[str, Any]:
        """Return the values that are fields of a dataclass; its field `further` holds all other values."""
        return fields_of(owner, self.values)


def also_takes(options: Callable[[], Iterable[Option]]) -> Callable[[Marked], Marked]:
    """Add the options that `options` returns when the command runs; its parameter of type `Asked` receives them."""

    def mark(command: Marked) -> Marked:
        command.declared_elsewhere = options  # type: ignore[attr-defined]
        return command

    return mark


def hides(options: Callable[[], Iterable[str]]) -> Callable[[Marked], Marked]:
    """Leave options, by name, out of help and completion: the command takes them only to say why it refuses them."""

    def mark(command: Marked) -> Marked:
        command.hides = options  # type: ignore[attr-defined]
        return command

    return mark


def command_of(function: Function, name: str) -> HelpfulCommand:
    """Return the command of a function."""
    groups = {name: kind for name, kind in typing.get_type_hints(function).items() if name != "return"}
    options = [option for kind in groups.values() if kind is not Asked for option in options_of(kind)]
    declared, unseen = (list(getattr(function, mark, tuple)()) for mark in ("declared_elsewhere", "hides"))
    shared = [option for option in declared if any(_is_same(option, each) for each in options)]
    words = {word for option in (*options, VERBOSE) for word in _words(option)}
    elsewhere = [option for option in declared if words.isdisjoint(_words(option))]
    taken = frozenset(option.name for option in declared if option not in (*elsewhere, *shared))
    options += [*elsewhere, VERBOSE]
    elsewhere += shared

    def run(typer_context: typer.Context, **values: Any) -> int | None:
        given = tuple(option.name for option in elsewhere if _is_given(typer_context, option))
        asked = Asked({option.name: values[option.name] for option in elsewhere}, given, taken)
        for option in options:
            if option.kind is Path and option.heading is Heading.OUTPUT:
                check_not_stdout(option.flag, values[option.name])
        parts = {name: asked if kind is Asked else _made(kind, values) for name, kind in groups.items()}
        evidence = Evidence(_paths(options, values))
        try:
            return function(**parts)
        finally:
            evidence.release()

    context = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [_parameter(option, is_hidden=option.name in unseen) for option in options]
    run.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    hidden = {flag.lstrip("-"): option.flag.lstrip("-") for option in options for flag in option.hidden_flags}
    settings = {**SETTINGS, "token_normalize_func": lambda word: hidden.get(word, word)}
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=HelpfulCommand, help=function.__doc__, context_settings=settings)(run)
    command = cast(HelpfulCommand, typer.main.get_command(app))
    command.plain = frozenset(option.name for option in options if option.is_plain and option.name not in unseen)
    command.params.append(_whole_help_option(command))
    return command


def _paths(options: Iterable[Option], values: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the existing paths among the words of a command, except outputs; without inputs, the folder.

    Patterns are replaced by the paths that match, `$ROCPD_INPUT` by its list.
    """
    named = [option for option in options if option.kind in (str, Path) and option.heading is not Heading.OUTPUT]
    inputs = [option for option in named if option.heading is Heading.INPUTS]
    given = {option.name: _words_of(values[option.name]) for option in named}
    words = [word for option in named for word in given[option.name]]
    if inputs:
        words += os.environ.get("ROCPD_INPUT", "").split(os.pathsep)
        words += [] if any(given[option.name] for option in inputs) else [os.curdir]
    patterns = [word for option in inputs for word in given[option.name] if any(letter in word for letter in "*?[")]
    with contextlib.suppress(OSError, ValueError):  # statements are words, too: too long for a path
        yield from (Path(word) for word in words if word and os.path.lexists(word))
    yield from (Path(path) for word in patterns for path in glob.glob(word, recursive=True))  # noqa: PTH207


def _words_of(value: Any) -> list[str]:
    return [str(word) for word in (value if isinstance(value, list | tuple) else [value]) if word is not None]


def _is_same(option: Option, declared: Option) -> bool:
    """Whether the command declares the same option itself; its help may differ."""
    return option.name == declared.name and replace(option, help=declared.help, heading=declared.heading) == declared


def _words(option: Option) -> tuple[str, ...]:
    """Return the names and flags of an option, which no other option of its command may have."""
    return option.name, option.flag, *option.flags, *option.hidden_flags


def _is_given(context: typer.Context, option: Option) -> bool:
    source = context.get_parameter_source(option.name)
    return source is not None and source.name == "COMMANDLINE"


def _made(kind: type, values: Mapping[str, Any]) -> object:
    return kind(**{o.name: tuple(values[o.name]) if o.several else values[o.name] for o in options_of(kind)})


def _parameter(option: Option, *, is_hidden: bool) -> inspect.Parameter:
    """Return an option as typer reads it: a parameter of a function."""
    is_choice = issubclass(option.kind, StrEnum)
    complete = _completion(option) if is_choice or option.complete or option.complete_from else None
    declare: Callable[..., Any] = typer.Argument
    if not option.is_positional:
        declare = partial(typer.Option, *(option.flags or (option.flag,)))
    declared = declare(
        metavar=metavar_of(option),
        parser=partial(_member, option) if is_choice else None,
        autocompletion=complete,
        min=option.least,
        max=option.most,
        envvar=option.environment or None,
        help=text_of(option),
        rich_help_panel=option.heading or Heading.WHAT,
        hidden=is_hidden,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.is_required else option.default,
        annotation=Annotated[list[option.kind] if option.several else option.kind, declared],  # type: ignore[name-defined]
    )


def _member(option: Option, word: str) -> StrEnum:
    """Return the member of an enum that a word names in upper or lower case; some are hidden (`_missing_`)."""
    choices: type[StrEnum] = option.kind
    try:
        return choices(word.lower())
    except ValueError:
        name = "" if option.is_positional else f"{option.flag} "
        hint = entries.near(word, choices, f"one of {', '.join(choices)}")
        raise UsageError(f"{name}{word}: unknown", hint) from None


def _completion(option: Option) -> Callable[[typer.Context], list[str]]:
    """Return the completion of an option's values; typer leaves out those that do not begin like the word."""

    def complete(context: typer.Context) -> list[str]:
        known = [*(option.kind if issubclass(option.kind, StrEnum) else ()), *(option.complete or tuple)()]
        if option.complete_from:
            given = [context.params.get(name) or () for name in ("named", "words")]
            complete_from = entries.load(f"rocpd.cli.completion:{option.complete_from}", option.flag)
            known += complete_from([word for words in (*given, context.args) for word in words])
        return known

    return complete


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "summary": "Show where the time went, exact over all ranks",
        "advise": "Say what costs time, and what to do about it",
        "whatif": "Predict how long a step would take, had something been different",
        "hang": "Say whether a job hangs, which rank is missing, and who waits",
        "diff": "Say whether a job is slower than another, and where",
        "history": "Say since when a job is as fast as it is, of many runs",
        "query": "Ask SQL of all ranks at once",
        "shell": "Open SQLite's shell on all ranks, read-only",
        "schema": "List tables and views, or the columns of some",
        "counters": "Show which hardware counters were collected, and for what",
        "info": "Show the job: GPUs, versions, ranks, rows, problems",
        "questions": "Show which command answers which question",
        "mcp": "Answer agents' questions by the Model Context Protocol",
        "raptor": "Show RAPTOR's tables, for its command lines",
    },
    "See": {
        "top": "Show a job while it runs: steps, ranks that cost time, who is silent",
        "view": "Show a job in the browser: time line, report, flame graphs, SQL",
        "report": "Write the verdict, charts and tables of a job as one file",
    },
    "Hand on": {
        "convert": "Write traces and tables that other tools read",
        "merge": "Write all ranks into one SQLite file",
        "trim": "Write the part of a job that lies in a window",
        "package": "Put the files of a job under one name",
        "redact": "Write files of a job that can be given away",
        "symbolize": "Name functions of stripped libraries, from debug files elsewhere",
        "import": "Write traces of other profilers as rocpd files",
        "index": "Build an index, from which queries and summaries are answered",
        "cache": "List or remove imported, indexed and derived data of ranks",
    },
    "Record": {
        "record": "Record a command: one database per process",
        "control": "Start, stop or flush a recorder, or ask how it is",
        "doctor": "Say what this machine can record, and what to do where it cannot",
        "simulate": "Write the files of a simulated training job",
    },
}
"""Heading of `rocpd --help` -> name -> the first line of the command's docstring; help imports no command for it."""

COMMANDS: Mapping[str, str] = {name: line for each in GROUPS.values() for name, line in each.items()}
"""Name -> line, in the order of `rocpd --help`."""

_HOMES = {
    **dict.fromkeys(("merge", "trim", "package", "redact", "symbolize", "import", "index", "cache"), "files"),
    **dict.fromkeys(("counters", "raptor"), "summary"),
    "hang": "top",
    "history": "diff",
    "schema": "info",
    "shell": "query",
    **dict.fromkeys(("report", "whatif"), "advise"),
    **dict.fromkeys(("control", "doctor"), "record"),
    "questions": "mcp",
}
"""Command -> the module that it shares with commands of its subject; others have a module of their own name."""

_ABOUT = """Treat the profile databases of a GPU job as one.

Examples:
    rocpd job/                                what is slow, on which rank and step, and why
    rocpd advise job/                         what to do about it
    rocpd query "select * from top_kernels" job/
    rocpd convert --format pftrace job/
"""


def function_of(command: str) -> Function:
    """Return the function of a command."""
    word = command + "_" * keyword.iskeyword(command)
    function: Function = entries.load(f"rocpd.cli.{_HOMES.get(command, word)}:{word}", command)
    return function


class Commands(TyperGroup):
    """`rocpd` itself."""

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a command, or None for an unknown name."""
        return None if cmd_name not in COMMANDS else command_of(function_of(cmd_name), cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command of a command line; a path that is not a command is a job, for `summary`.

        Raises:
            UsageError: there is no command of this name.
        """
        if args[0] not in COMMANDS and argv.is_path(args[0]):
            args = ["summary", *args]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from rocpd.cli.hints import filled, meant_by

            hint = meant_by(args[0], COMMANDS, "rocpd --help")
            raise UsageError(f"No such file or command '{args[0]}'", filled(hint, args[1:]))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the whole help."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter)
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(group.items()))
        with formatter.section("Options"):
            formatter.write_dl([row for _, row in rows_of(self.get_params(ctx))])


def _print_version(context: typer.Context, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        sys.stdout.write(f"rocpd {__version__}\n")
        raise typer.Exit


def _rocpd(
    _version: Annotated[
        bool, typer.Option("-v", "--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def commands() -> Commands:
    """Return `rocpd` with all commands."""
    app = typer.Typer(cls=Commands, help=_ABOUT, context_settings=SETTINGS, rich_markup_mode=None)
    app.callback()(_rocpd)
    return cast(Commands, typer.main.get_command(app))


def commands_with(flag: str) -> list[str]:
    """Return the names of the commands that have an option."""
    group = commands()
    context = typer.Context(group)
    known = ((name, group.get_command(context, name)) for name in COMMANDS)
    return [name for name, command in known if command and any(flag in p.opts for p in command.params)]
