"""Reads the words of the command line before and beside typer.

Habits of AMD's command line that typer can't parse are rewritten first, such as several values after one `-i` or
`-f`. Words without a flag are divided into SQL, names of analyses, and inputs.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Sequence

from rocpd.base import UsageError, entries

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
"""Options of AMD's command line without a meaning here, as files are not merged before they are read and there are no
ring buffer and no templates -> the number of values that each takes."""


def drop_no_effect(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Remove options without effect; return the other words, and the names of the removed options.

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
    `convert` take bare words that are not files.

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
    """Take the values of an option from `words`: the first word in any case, and the following ones that `is_value`."""
    values: list[str] = []
    while words and (words[0] == "-" or not words[0].startswith("-")) and (not values or is_value(words[0])):
        values.append(words.pop(0))
    return [word for value in values for word in (option, value)] or [option]


def _is_name(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w-]*", word) is not None and not os.path.lexists(word)


_ENDINGS = (".db", ".rpdb", ".yaml")


def split_sql(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the SQL among words, if there is any, and the inputs. A word that can't be an input may be SQL.

    Of several candidates the first with blanks or punctuation of SQL is the statement, else the first of all; the
    others are missing inputs.

    >>> split_sql(["missing", "select 1"]), split_sql(["kernels", "a.db"])
    (('select 1', ['missing']), ('kernels', ['a.db']))
    """
    candidates = [index for index, word in enumerate(words) if not _is_input(word)]
    if not candidates:
        return None, list(words)
    (chosen, *_) = sorted(candidates, key=lambda index: not _looks_like_sql(words[index]))
    return words[chosen], [*words[:chosen], *words[chosen + 1 :]]


def is_path(word: str) -> bool:
    """Whether a word is an input, or would be one if it existed; a folder named like a command is written `./top`."""
    return os.path.lexists(word) or os.sep in word or word.endswith(_ENDINGS)


def _is_input(word: str) -> bool:
    named = glob.has_magic(word) or word.endswith(_ENDINGS)
    return os.path.lexists(word) or (named and not _looks_like_sql(word))


def _looks_like_sql(word: str) -> bool:
    return any(mark in word for mark in " \n\t;(")


def check_sql(sql: str) -> None:
    """Refuse SQL that is a single word, such as the name of a view.

    Raises:
        UsageError: it is a single word.
    """
    word = sql.strip().rstrip(";")
    if not re.fullmatch(r"\w+", word):
        return
    from rocpd.schema.load import TABLES, VIEWS
    from rocpd.summary.relations import BARE

    relations = [relation.replace("_", "-") for relation in (*BARE, *VIEWS, *TABLES)]  # as `closest` spells words
    relation = (entries.closest(word, relations) or ["kernels"])[0].replace("-", "_")
    hint = f'rocpd query "select * from {relation}"'  # noqa: S608 (a hint)
    raise UsageError(f"{word}: neither SQL nor a file", hint)


def split_names(
    words: Iterable[str], known: Iterable[str], commands: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the names of analyses and the inputs; a file named like an analysis is written `./kernels`.

    >>> split_names(["kernels", "gaps", "job/a.db"], ["kernels", "gaps"])
    (['kernels', 'gaps'], ['job/a.db'])
    >>> split_names(["idle_calls"], ["idle-calls"])
    (['idle-calls'], [])

    Raises:
        UsageError: a bare word is neither a name nor a file.
    """
    names = [*known]
    words = [spelt if (spelt := word.replace("_", "-")) in names and word not in names else word for word in words]
    inputs = [word for word in words if word not in names]
    for word in inputs:
        if re.fullmatch(r"[A-Za-z_-]+", word) and not os.path.lexists(word):
            from rocpd.cli.hints import filled, meant_by

            hint = meant_by(word, names, "`rocpd summary --list` shows all summaries", commands)
            raise UsageError(f"{word}: neither a summary nor a file", filled(hint, inputs))
    return [word for word in words if word in names], inputs
