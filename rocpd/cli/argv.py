"""Owns the one habit of AMD's command line that typer can't parse: several values after one `-i` or `-f`.

Rewrites arguments before typer sees them; knows no command's meaning beyond that.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from rocpd.convert import ALIASES, FORMATS
from rocpd.summary.registry import REGION_DOMAINS

_INPUT = ("-i", "--input")
_FORMATS = (*FORMATS, *ALIASES)
_NAMED = {
    "-f": _FORMATS,
    "--format": _FORMATS,
    "--output-format": _FORMATS,
    "--region-categories": (*REGION_DOMAINS, "MARKER", "NONE"),
}
"""Options that take several known names; the first word after them always belongs to them."""

NO_EFFECT = {
    "--perfetto-backend": 1,
    "--perfetto-buffer-fill-policy": 1,
    "--perfetto-buffer-size": 1,
    "--perfetto-shmem-size-hint": 1,
    "--no-annotate-kfd": 0,
    "--template-path": 1,
}
"""Options of AMD's command line that mean nothing here (no ring buffer, no templates); how many values each takes."""


def drop_no_effect(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take out options without effect; give what is left and the names of those taken out.

    >>> drop_no_effect(["convert", "--perfetto-buffer-size", "1024", "-f", "csv"])
    (['convert', '-f', 'csv'], ['--perfetto-buffer-size'])
    """
    words, kept, dropped = list(arguments), [], []
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition("=")
        if name in NO_EFFECT:
            dropped.append(name)
            if not equals:
                del words[: NO_EFFECT[name]]
        else:
            kept.append(word)
    return kept, dropped


def rewrite(arguments: Sequence[str]) -> list[str]:
    """Repeat an option for each of its values: `-i a b` becomes `-i a -i b`.

    `-i` takes values up to the next option; `--region-categories` and `convert`'s `-f` take known names only. After
    `query` without `--query` the last value that is no path is the SQL.

    >>> rewrite(["convert", "-f", "csv", "pftrace", "a.db"])
    ['convert', '-f', 'csv', '-f', 'pftrace', 'a.db']
    >>> rewrite(["query", "-i", "a", "b", "select 1"])
    ['query', '-i', 'a', '-i', 'b', 'select 1']
    """
    words = list(arguments)
    command = next((word for word in words if not word.startswith("-")), "")
    result: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return [*result, word, *words]
        if word in _INPUT:
            result += _inputs(word, _take_values(words), command, words)
        elif word in _NAMED and (command == "convert" or word == "--region-categories"):
            result += _repeat(word, _take_names(words, _NAMED[word]))
        else:
            result.append(word)
    return result


def _take_values(words: list[str]) -> list[str]:
    values = []
    while words and (not words[0].startswith("-") or words[0] == "-"):
        values.append(words.pop(0))
    return values


def _take_names(words: list[str], names: Sequence[str]) -> list[str]:
    known = {name.lower() for name in names}
    values = [words.pop(0)] if words and not words[0].startswith("-") else []
    while words and words[0].lower() in known and not os.path.exists(words[0]):  # noqa: PTH110 (start-up)
        values.append(words.pop(0))
    return values


def _inputs(option: str, values: list[str], command: str, rest: Sequence[str]) -> list[str]:
    sql: list[str] = []
    if command == "query" and not any(word.split("=")[0] in ("--query", "--script") for word in rest):
        for value in reversed(values):
            if not _is_path(value):
                values.remove(value)
                sql = [value]
                break
    return [*_repeat(option, values), *sql]


def _repeat(option: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (option, value)] or [option]


def _is_path(word: str) -> bool:
    return (
        os.path.lexists(word) or (" " not in word and glob.has_magic(word)) or word.endswith((".db", ".rpdb", ".yaml"))
    )
