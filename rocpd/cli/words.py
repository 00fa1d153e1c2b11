"""Owns what a word without a flag is: SQL, the name of an analysis, or an input."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence

from rocpd import entries
from rocpd.errors import UsageError

_ENDINGS = (".db", ".rpdb", ".yaml")


def split_sql(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the SQL among words, if there is any, and the inputs: SQL is a word that can be no input.

    Of several such words the first with blanks or punctuation of SQL is it, else the first; the others are inputs that
    are missing.

    >>> split_sql(["missing", "select 1"]), split_sql(["kernels", "a.db"])
    (('select 1', ['missing']), ('kernels', ['a.db']))
    """
    candidates = [index for index, word in enumerate(words) if not _is_input(word)]
    if not candidates:
        return None, list(words)
    (chosen, *_) = sorted(candidates, key=lambda index: not _looks_like_sql(words[index]))
    return words[chosen], [*words[:chosen], *words[chosen + 1 :]]


def _is_input(word: str) -> bool:
    named = glob.has_magic(word) or word.endswith(_ENDINGS)
    return os.path.lexists(word) or (named and not _looks_like_sql(word))


def _looks_like_sql(word: str) -> bool:
    return any(mark in word for mark in " \n\t;(")


def check_sql(sql: str) -> None:
    """Find out whether what should be SQL is a word alone, such as the name of a view.

    Raises:
        UsageError: it is.
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


def split_names(words: Iterable[str], known: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of analyses and the inputs: a file that is called like an analysis is `./kernels`.

    >>> split_names(["kernels", "gaps", "job/a.db"], ["kernels", "gaps"])
    (['kernels', 'gaps'], ['job/a.db'])

    Raises:
        UsageError: a bare word that is neither.
    """
    names = [*known]
    inputs = [word for word in words if word not in names]
    for word in inputs:
        if re.fullmatch(r"[A-Za-z_-]+", word) and not os.path.lexists(word):
            hint = entries.near(word, names, "`rocpd summary --list` shows all summaries")
            raise UsageError(f"{word}: neither a summary nor a file", hint)
    return [word for word in words if word in names], inputs
