"""Owns what help looks like: examples first, options under headings, no more than 100 columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from rocpd.option import Heading, Option

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_LONGEST_DEFAULT = 12
_METAVARS: dict[type, str] = {int: "N", float: "X", Path: "FILE", str: "TEXT"}
HELP_ROW = ("-h, --help", "Show this message and exit.")
_EXAMPLES = "Examples:\n"


class HelpfulCommand(click.Command):
    """A command that knows the declarations of its options."""

    def __init__(
        self,
        name: str,
        callback: Callable[..., Any],
        parameters: Sequence[click.Parameter],
        doc: str,
        options: Sequence[Option],
    ) -> None:
        super().__init__(
            name, context_settings=SETTINGS, callback=callback, params=list(parameters), help=doc, add_help_option=True
        )
        self._options = tuple(options)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the whole help."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter)
        for heading in Heading:
            rows = [_row(option) for option in self._options if (option.heading or Heading.WHAT) is heading]
            rows += [HELP_ROW] if heading is Heading.OTHER else []
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def write_doc(doc: str, formatter: click.HelpFormatter) -> None:
    """Write a docstring: its first paragraph, its examples, and then the rest."""
    text, _, examples = inspect.cleandoc(doc).partition(_EXAMPLES)
    first, *rest = text.strip().split("\n\n")
    _write_paragraph(first, formatter)
    if examples:
        formatter.write(f"\n{_EXAMPLES}")
        for line in inspect.cleandoc(examples).splitlines():
            formatter.write(f"  {line}\n")
    for paragraph in rest:
        _write_paragraph(paragraph, formatter)


def _write_paragraph(text: str, formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(text.split()))


def _row(option: Option) -> tuple[str, str]:
    if option.is_positional:
        return option.metavar, option.help
    flags = ", ".join(option.flags or (option.flag,))
    value = "" if option.kind is bool else f" {_metavar(option)}"
    listing = f" {option.listing()}." if option.listing else ""
    return flags + value, option.help + listing + _added(option)


def _metavar(option: Option) -> str:
    if option.metavar:
        return option.metavar
    if issubclass(option.kind, StrEnum):
        return "|".join(member.value for member in option.kind)
    return _METAVARS.get(option.kind, "VALUE")


def _added(option: Option) -> str:
    """Return what help says beside its text: the variable, and the default where it is short."""
    default = "" if option.default in (None, False, ()) else str(option.default)
    added = [f"default: {default}"] if 0 < len(default) <= _LONGEST_DEFAULT else []
    added += [f"or ${option.environment}"] if option.environment else []
    added += ["required"] if option.is_required else []
    return f" ({', '.join(added)})" if added else ""
