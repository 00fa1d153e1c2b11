"""The options of a redaction; each field declares its own. Imports nothing heavy."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import ClassVar

from rocpd.base import UsageError, frozen
from rocpd.base.entries import closest
from rocpd.base.option import Heading, plain


class Level(enum.StrEnum):
    """How much is replaced: places and users of a job, or also its computations and dates."""

    SHARE = "share"
    STRICT = "strict"


class Clue(enum.StrEnum):
    """A kind of text that gives something away."""

    HOST = "host"
    MACHINE = "machine"
    USER = "user"
    PATH = "path"
    ARGUMENT = "argument"
    VARIABLE = "variable"
    ADDRESS = "address"
    POINTER = "pointer"
    MAIL = "mail"
    URL = "url"
    SECRET = "secret"
    GUID = "guid"
    KERNEL = "kernel"
    MARKER = "marker"
    RULE = "rule"
    TEXT = "text"


_IN_TEXTS = frozenset({Clue.USER, Clue.PATH, Clue.ARGUMENT, Clue.ADDRESS, Clue.MAIL, Clue.URL, Clue.SECRET, Clue.GUID})
"""Kinds of values in texts; strict files have no such texts."""


@frozen
class RedactOptions:
    """The kinds of values that are replaced.

    Args:
        level: `share` replaces places and users of a job; `strict` also names of kernels and markers, addresses of
            memory, and the date.
        keep: kinds that stay, or names of environment variables that stay with their value.
        rules: TOML file with the table `replace`: regular expression -> word that replaces its matches.
        dry_run: only count.
    """

    HEADING: ClassVar = Heading.WHAT

    level: Level = plain(
        Level.SHARE, "share: where and by whom a job ran; strict: also kernels, markers, addresses and the date."
    )
    keep: tuple[str, ...] = plain(
        (), "Leave a kind as it is (host, kernel, path …) or an environment variable; repeatable."
    )
    rules: Path | None = plain(None, 'TOML file: [replace] "regular expression" = "word".', "FILE")
    dry_run: bool = plain(False, "Only count the replacements; write nothing.")

    def check(self) -> None:
        """Refuse to keep kinds that would be replaced all the same.

        Raises:
            UsageError: there is such a kind.
        """
        for word in self.keep:
            if word == Clue.RULE:
                raise UsageError("--keep rule: what the rules name goes", "leave out --rules, or the rule")
            if self.level is Level.STRICT and word in _IN_TEXTS and Clue.TEXT not in self.keep:
                said = f"--keep {word}: level strict replaces each text as a whole, with all that it holds"
                raise UsageError(said, f"--keep text --keep {word} redacts texts as level share does, and keeps it")
            if word.islower() and word not in [*Clue] and (known := closest(word, Clue)):
                raise UsageError(f"--keep {word}: is no kind", f"did you mean {' or '.join(known)}?")
