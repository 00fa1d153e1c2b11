"""Owns what help looks like: examples first, options under headings, no more than 100 columns."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperArgument, TyperCommand, TyperOption

from rocpd.option import Heading, Option

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_LONGEST_DEFAULT = 12
_METAVARS: dict[type, str] = {int: "N", float: "X", Path: "FILE", str: "TEXT"}
_EXAMPLES = "Examples:\n"


class HelpfulCommand(TyperCommand):
    """A command with its options under headings."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return what the line of usage shows after the name."""
        return ["[OPTIONS]", *(each.metavar or "" for each in self.params if isinstance(each, TyperArgument))]

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the whole help."""
        self.format_usage(ctx, formatter)
        write_doc(self.help or "", formatter)
        rows = list(rows_of(self.get_params(ctx)))
        for heading in Heading:
            if here := [row for above, row in rows if above == heading]:
                with formatter.section(heading):
                    formatter.write_dl(here)


def write_doc(doc: str, formatter: HelpFormatter) -> None:
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


def _write_paragraph(text: str, formatter: HelpFormatter) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(text.split()))


def rows_of(parameters: Iterable[Parameter]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the heading of each option, and its row: how it is spelt, and what it does."""
    for each in parameters:
        if isinstance(each, TyperArgument | TyperOption):
            spelt = [] if isinstance(each, TyperArgument) else sorted(each.opts, key=lambda flag: flag.startswith("--"))
            row = " ".join(filter(None, (", ".join(spelt), each.metavar))), each.help or ""
            yield each.rich_help_panel or Heading.OTHER, row


def metavar_of(option: Option) -> str | None:
    """Return what help shows for the value of an option; None: it takes none."""
    if option.metavar or option.kind is bool:
        return option.metavar or None
    if issubclass(option.kind, StrEnum):
        return "|".join(option.kind)
    return _METAVARS.get(option.kind, "VALUE")


def text_of(option: Option) -> str:
    """Return what help says of an option: its text, the values that it can have, a short default, the variable."""
    if option.is_positional:
        return option.help
    listing = f" {option.listing()}." if option.listing else ""
    default = "" if option.default in (None, False, ()) else str(option.default)
    added = [f"default: {default}"] if 0 < len(default) <= _LONGEST_DEFAULT else []
    added += [f"or ${option.environment}"] if option.environment else []
    added += ["required"] if option.is_required else []
    return option.help + listing + (f" ({', '.join(added)})" if added else "")
