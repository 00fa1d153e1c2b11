"""Completes words for the shell, as typer does; for bash they are quoted."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from typer._click.shell_completion import CompletionItem, add_completion_class
from typer._completion_classes import BashComplete

if TYPE_CHECKING:
    from rocpd.cli.commands import Commands

VARIABLE = "_ROCPD_COMPLETE"
"""Environment variable through which the shell asks for completions."""


class _Bash(BashComplete):
    """Quotes what bash puts into the line, such as a marker with blanks; zsh and fish quote by themselves."""

    def format_completion(self, item: CompletionItem) -> str:
        return shlex.quote(item.value)


def complete(group: Commands) -> None:
    """Write the completions that the shell asks for, and end the process."""
    add_completion_class(_Bash, "bash")
    group.main([], "rocpd")
