"""Owns the habits of AMD's command line that typer can't parse: several values after one `-i` or `-f`.

Rewrites arguments before typer sees them; what the words mean is up to the commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

_INPUT = ("-i", "--input", "--base", "--new")
_FORMAT = ("-f", "--format", "--output-format")
_NAMES = ("--region-categories", "--sections")

NO_EFFECT = {
    "--automerge-limit": 1,
    "--perfetto-backend": 1,
    "--perfetto-buffer-fill-policy": 1,
    "--perfetto-buffer-size": 1,
    "--perfetto-shmem-size-hint": 1,
    "--no-annotate-kfd": 0,
    "--template-path": 1,
}
"""Options of AMD's command line that mean nothing here, where files are not merged before they are read and there is no
ring buffer and no template; how many values each takes."""


def drop_no_effect(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take out options without effect; return the other words, and the names of those taken out.

    >>> drop_no_effect(["convert", "--perfetto-buffer-size", "1024", "-f", "csv"])
    (['convert', '-f', 'csv'], ['--perfetto-buffer-size'])
    """
    words = list(arguments)
    others: list[str] = []
    dropped: list[str] = []
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition("=")
        if word == "--":
            return [*others, word, *words], dropped
        if name in NO_EFFECT:
            dropped.append(name)
            if not equals:
                del words[: NO_EFFECT[name]]
        else:
            others.append(word)
    return others, dropped


def rewrite(arguments: Sequence[str]) -> list[str]:
    """Repeat an option for each of its values: `-i a b` becomes `-i a -i b`.

    `-i`, `--base` and `--new` take values up to the next option; `--region-categories`, `--sections` and `-f` of
    `convert` bare words but files.

    >>> rewrite(["convert", "-f", "csv", "pftrace", "a.db"])
    ['convert', '-f', 'csv', '-f', 'pftrace', 'a.db']
    """
    words = list(arguments)
    command = next((word for word in words if not word.startswith("-")), "")
    result: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return [*result, word, *words]
        if word in _INPUT:
            result += _repeated(word, words, lambda _: True)
        elif word in _NAMES or (word in _FORMAT and command == "convert"):
            result += _repeated(word, words, _is_name)
        else:
            result.append(word)
    return result


def _repeated(option: str, words: list[str], is_value: Callable[[str], bool]) -> list[str]:
    """Take the values of an option from `words`: the first word, whatever it is, and those that look like more."""
    values: list[str] = []
    while words and (words[0] == "-" or not words[0].startswith("-")) and (not values or is_value(words[0])):
        values.append(words.pop(0))
    return [word for value in values for word in (option, value)] or [option]


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w-]*", word) is not None and not os.path.lexists(word)
