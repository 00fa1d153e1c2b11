"""Writes the redacted files of a job: new ones, in which hosts, users, paths and secrets have other names.

Durations, ids and counts stay, so every analysis gives the same numbers. Never changes a raw file, and never delivers
a file in which a search finds what was replaced.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import apsw

from rocpd.errors import OutputError, UsageError
from rocpd.federate.federation import Federation
from rocpd.federate.open.opening import as_input_error
from rocpd.output import folder_complete_or_nothing
from rocpd.redact.columns import NUMBERS
from rocpd.redact.copying import Counts, NewIdentity, Numbers, RankCopy
from rocpd.redact.options import Clue, Level, RedactOptions
from rocpd.redact.pseudonyms import Pseudonyms
from rocpd.redact.search import column_with, find_texts, sought
from rocpd.redact.survey import kernels_and_markers, shifts, survey
from rocpd.redact.texts import Redactor
from rocpd.types import Progress


def redact(
    session: Federation, folder: Path, options: RedactOptions, force: bool = False, progress: Progress | None = None
) -> Counts:
    """Write `rank0.db` … into a new folder, one file per rank.

    Args:
        session: the job; with a window or filters only the events that count are written.
        folder: the new folder.
        options: what is replaced.
        force: replace a folder that an earlier run wrote.
        progress: called with (ranks done, ranks in all).

    Returns:
        (table, column) -> number of texts that were replaced.

    Raises:
        UsageError: the file of rules cannot be used.
        OutputError: the folder exists or cannot be written, or a file still holds what should be replaced; then nothing
            is written.
    """
    redactor, guids = _prepare(session, options)
    numbers = {**NUMBERS, **(shifts(session) if options.level is Level.STRICT else {})}
    counts: Counts = Counter()
    with contextlib.ExitStack() as stack:
        temporary = None if options.dry_run else stack.enter_context(folder_complete_or_nothing(folder, force))
        width = len(str(max(rank.number for rank in session.ranks)))
        for done, rank in enumerate(session.ranks, 1):
            path = temporary / f"rank{rank.number:0{width}}.db" if temporary else None
            counts += _copy(session, NewIdentity(rank, guids[rank.guid]), redactor, numbers, path)
            if progress:
                progress(done, len(session.ranks))
        if temporary:
            _check(
                temporary,
                redactor.pseudonyms,
                [text for rank in session.ranks for text in (rank.plain_guid, rank.suffix.lstrip("_"))],
            )
    return counts


def _prepare(session: Federation, options: RedactOptions) -> tuple[Redactor, Mapping[str, str]]:
    pseudonyms = Pseudonyms()
    surveyed = survey(session, pseudonyms, options.keep)
    whole = kernels_and_markers(session) if options.level is Level.STRICT else {}
    redactor = Redactor(pseudonyms, surveyed.known, frozenset(options.keep), _rules(options.rules), whole)
    return redactor, surveyed.guids


def _rules(path: Path | None) -> Mapping[str, str]:
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))["replace"]
        return {str(pattern): str(word) for pattern, word in content.items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path}: not a file of rules: {error}", 'it holds [replace] and lines "REGEX" = "word"'
        ) from error


def _copy(
    session: Federation, identity: NewIdentity, redactor: Redactor, numbers: Numbers, path: Path | None
) -> Counts:
    rank = identity.old
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(str(path or ":memory:"), flags)
    try:
        with as_input_error(rank.opening.path):
            connection.pragma("synchronous", 0)
            connection.execute("ATTACH ? AS source", (rank.opening.uri,))
            copy = RankCopy(connection, session.rank_tables(rank.number, "source"), identity, redactor, numbers)
            if path:
                copy.write()
            else:
                copy.count()
        return copy.counts
    finally:
        connection.close()


def _check(folder: Path, pseudonyms: Pseudonyms, guids: list[str]) -> None:
    texts = sought([*pseudonyms.replaced(), *((Clue.GUID, guid) for guid in guids)])
    for path in sorted(folder.glob("*.db")):
        for text in find_texts(path, texts):
            raise OutputError(
                f"{path.name}: {column_with(path, text)} would hold what is replaced elsewhere; nothing is written",
                "name it in a file for --rules",
            )
