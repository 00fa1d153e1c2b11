"""Completes words for the shell, as typer does; for bash they are quoted.

Ranks, hosts, markers and steps are read from the files on the command line. Files that can't be read give no words
and no errors, since somebody is typing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typer._click.shell_completion import CompletionItem, add_completion_class
from typer._completion_classes import BashComplete

from rocpd.base import RocpdError
from rocpd.cli.diagnostics import size_of

if TYPE_CHECKING:
    from rocpd.cli.commands import Commands
    from rocpd.session import Session


class _Bash(BashComplete):
    """Quotes words for bash, such as a marker with blanks; zsh and fish quote by themselves."""

    def format_completion(self, item: CompletionItem) -> str:
        return shlex.quote(item.value)


def complete(group: Commands) -> None:
    """Write the completions that the shell asks for, and end the process."""
    add_completion_class(_Bash, "bash")
    group.main([], "rocpd")


_LARGEST = 200_000_000  # bytes of a job whose markers are read while somebody waits
_MOST = 200  # markers
_MARKERS = f"SELECT name FROM markers GROUP BY name ORDER BY MIN(start) LIMIT {_MOST}"  # noqa: S608


def ranks(words: Sequence[str]) -> list[str]:
    """Return the numbers of the ranks of the inputs among words."""
    return _ask(words, lambda session: [str(rank.number) for rank in session.ranks])


def hosts(words: Sequence[str]) -> list[str]:
    """Return the names of the hosts of the inputs."""
    return _ask(words, lambda session: sorted({rank.hostname for rank in session.ranks if rank.hostname}))


def markers(words: Sequence[str]) -> list[str]:
    """Return the texts of the markers of the inputs."""
    return _ask(words, _markers)


def steps(words: Sequence[str]) -> list[str]:
    """Return the numbers of the steps of the inputs."""
    from rocpd.schema.rules.steps import STEP_MARKER

    names = [name for name in _ask(words, _markers) if re.search(STEP_MARKER, name)]
    return list(dict.fromkeys(number for name in names for number in re.findall(r"\d+", name)[:1]))


def _markers(session: Session) -> list[str]:
    return [name for (name,) in session.execute(_MARKERS) if name] if size_of(session) < _LARGEST else []


def _ask(words: Sequence[str], question: Callable[[Session], list[str]]) -> list[str]:
    from rocpd.session import connect

    inputs = [word for word in words if Path(word).exists() or "*" in word]
    try:
        with connect(inputs or None, jobs=1) as session:
            return question(session)
    except (RocpdError, OSError):
        return []
