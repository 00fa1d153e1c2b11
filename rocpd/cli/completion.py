"""Owns completion by the shell: printing its script, and installing it for the user."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from rocpd.cli.standard_output import standard_output
from rocpd.errors import UsageError

VARIABLE = "_ROCPD_COMPLETE"
"""Environment variable through which the shell asks for completions."""

_START_UP = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/rocpd.fish"}
"""Shell -> the file that it reads when it starts."""


def show(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the script of the current shell."""
    if wanted and not context.resilient_parsing:
        with standard_output() as out:
            out.write(_script(_shell()) + "\n")
        context.exit()


def install(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Add the script to what the current shell reads when it starts; idempotent."""
    if not wanted or context.resilient_parsing:
        return
    shell = _shell()
    path = Path(_START_UP[shell]).expanduser()
    script = _script(shell)
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    if script not in present:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{present}{script}\n", encoding="utf-8")
    sys.stderr.write(f"rocpd: completion of {shell} is in {path}; it works in new shells\n")
    context.exit()


def _shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _START_UP:
        raise UsageError(f"$SHELL: {name or 'not set'}, completion knows {', '.join(_START_UP)}", "SHELL=bash rocpd …")
    return name


def _script(shell: str) -> str:
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"completion of {shell}: not available")
    return kind(click.Command("rocpd"), {}, "rocpd", VARIABLE).source()
