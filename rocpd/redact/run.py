"""Writes the redacted files of a job: new ones, in which hosts, users, paths and secrets have other names.

Durations, ids and counts stay, so every analysis gives the same numbers. Never changes a raw file, and never delivers
a file in which a search finds what was replaced.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rocpd.errors import OutputError, UsageError
from rocpd.federate.federation import Federation
from rocpd.federate.open.opening import as_input_error
from rocpd.federate.open.stored_window import TAG
from rocpd.output import folder_complete_or_nothing
from rocpd.redact.columns import NUMBERS
from rocpd.redact.copying import Counts, NewIdentity, Numbers, RankCopy
from rocpd.redact.options import Clue, Level, RedactOptions
from rocpd.redact.pseudonyms import Pseudonyms
from rocpd.redact.search import column_with, find_texts, sought
from rocpd.redact.survey import kernels_and_markers, shifts, survey
from rocpd.redact.texts import Redactor
from rocpd.schema.render import OUTSIDE, RankTables
from rocpd.sqlite import apsw
from rocpd.trace.tables import SPANS
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
    identities = [NewIdentity(rank, guids[rank.guid]) for rank in session.ranks]
    with contextlib.ExitStack() as stack:
        temporary = None if options.dry_run else stack.enter_context(folder_complete_or_nothing(folder, force))
        counts = _copies(session, identities, redactor, numbers, temporary, progress)
        # A user whom only a path named, and others that are known now, are replaced wherever they stand.
        learned = _left(temporary, identities, redactor.pseudonyms)
        if any(text not in redactor.known and kind is not Clue.GUID for text, kind in learned.items()):
            counts = _copies(session, identities, redactor.knowing(learned), numbers, temporary, progress)
        if temporary:
            for text, kind in _left(temporary, identities, redactor.pseudonyms).items():
                raise _still_there(temporary, text, kind)
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


def _copies(
    session: Federation,
    identities: Sequence[NewIdentity],
    redactor: Redactor,
    numbers: Numbers,
    folder: Path | None,
    progress: Progress | None,
) -> Counts:
    """Write the file of each rank, in place of what was written before; or count alone."""
    counts: Counts = Counter()
    width = len(str(max(identity.old.number for identity in identities)))
    for done, identity in enumerate(identities, 1):
        path = folder / f"rank{identity.old.number:0{width}}.db" if folder else None
        if path:
            path.unlink(missing_ok=True)
        counts += _copy(session, identity, redactor, numbers, path)
        if progress:
            progress(done, len(identities))
    return counts


def _copied(tables: RankTables, numbers: Numbers) -> RankTables:
    """Return the tables that are copied: where times count anew, a merged window forgets what lies outside of it."""
    if not any(base in SPANS for base, _ in numbers):
        return tables
    columns = {base: names for base, names in tables.columns.items() if not base.startswith(OUTSIDE)}
    only = {**tables.only, "rocpd_metadata": f"tag IS NOT '{TAG}'"}
    return replace(tables, columns=columns, only=only)


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
            tables = _copied(session.rank_tables(rank.number, "source"), numbers)
            copy = RankCopy(connection, tables, identity, redactor, numbers)
            if path:
                copy.write()
            else:
                copy.count()
        return copy.counts
    finally:
        connection.close()


def _left(folder: Path | None, identities: Sequence[NewIdentity], pseudonyms: Pseudonyms) -> dict[str, Clue]:
    """Return what was replaced and still stands somewhere in the files; without files, what may."""
    guids = [text for identity in identities for text in (identity.old.plain_guid, identity.old.suffix.lstrip("_"))]
    kinds = sought([*pseudonyms.replaced(), *((Clue.GUID, guid) for guid in guids)])
    if folder is None:
        return kinds
    found = {text for path in folder.glob("*.db") for text in find_texts(path, kinds)}
    return {text: kind for text, kind in kinds.items() if text in found}


def _still_there(folder: Path, text: str, kind: Clue) -> OutputError:
    """Return the error about a text that stands where it cannot be replaced, such as in the name of a column."""
    path = next(path for path in sorted(folder.glob("*.db")) if find_texts(path, [text]))
    return OutputError(
        f"{path.name}: {column_with(path, text)} would hold a {kind} that is replaced elsewhere; nothing is written",
        f"name it in a file for --rules, or leave all of the kind as they are: --keep {kind}",
    )
