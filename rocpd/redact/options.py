"""The options of a redaction; each field declares its own. Imports nothing heavy."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option


class Level(enum.StrEnum):
    """How much is replaced: what says where and by whom a job ran, or also what it computes and when."""

    SHARE = "share"
    STRICT = "strict"


class Clue(enum.StrEnum):
    """What a text can give away."""

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


@frozen
class RedactOptions:
    """What is replaced.

    Args:
        level: `share` replaces what says where and by whom a job ran; `strict` also names of kernels and markers,
            addresses of memory, and the date.
        keep: kinds that stay, or names of environment variables that stay with their value.
        rules: TOML file with the table `replace`: regular expression -> word that stands in its place.
        dry_run: only count.
    """

    HEADING: ClassVar = Heading.WHAT

    level: Annotated[
        Level, Option("share: where and by whom a job ran; strict: also kernels, markers, addresses and the date.")
    ] = Level.SHARE
    keep: Annotated[
        tuple[str, ...], Option("Leave a kind as it is (host, user, path …) or an environment variable; repeatable.")
    ] = ()
    rules: Annotated[Path | None, Option('TOML file: [replace] "regular expression" = "word".', "FILE")] = None
    dry_run: Annotated[bool, Option("Only count what would be replaced; write nothing.")] = False
