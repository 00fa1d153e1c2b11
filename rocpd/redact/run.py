"""Writes the redacted files of a job: new ones, in which hosts, users, paths and secrets have other names.

Durations, ids and counts stay, so every analysis gives the same numbers; numbers that identify a machine change, and in
strict files times and addresses. Never copies a page, as no old text may survive, never changes a raw file, and never
delivers a file in which a search by bytes, so of every page and column, finds what was replaced.
"""

from __future__ import annotations

import contextlib
import mmap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from rocpd.base.errors import InputError, OutputError, UsageError
from rocpd.base.frozen import frozen
from rocpd.base.output import folder_complete_or_nothing
from rocpd.base.sqlite import apsw, writing
from rocpd.base.types import Progress
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import as_input_error
from rocpd.redact.encodings import decoded
from rocpd.redact.options import Clue, Level, RedactOptions
from rocpd.redact.strict import InJob, Strict, allowed
from rocpd.redact.survey import NUMBERS, kernels_and_markers, rule, shifts, survey
from rocpd.redact.texts import Pseudonyms, Redactor
from rocpd.schema.load import TABLES, table
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, create_view_text, select_text, views_over
from rocpd.schema.versions import suffix_of

Counts: TypeAlias = Counter[tuple[str, str]]
"""(table, column) -> texts that were replaced."""

Numbers: TypeAlias = Mapping[tuple[str, str], str]
"""(table, column) -> SQL expression in place of a number; `{column}` stands for its quoted name."""

_DISTINCT = ("rocpd_string", "string")  # the only texts that the schema wants to differ from each other
_EMPTY = ("", "{}", "[]")
"""Texts that hold nothing, and that most rows have."""


@frozen
class NewIdentity:
    """The suffix and GUID that a rank had, and those that it gets."""

    old: Rank
    guid: str

    @property
    def suffix(self) -> str:
        """Suffix of the new tables."""
        return suffix_of(self.guid)

    def in_text(self, text: str) -> str:
        """Return a text with the new ones, in all the ways in which they are written."""
        old = self.old.plain_guid
        text = text.replace(self.old.suffix, self.suffix).replace(self.old.guid, self.guid).replace(old, self.guid)
        return text.replace(old.replace("-", ""), self.guid.replace("-", ""))


class RankCopy:
    """Copies one rank into an open, empty database.

    Args:
        connection: to that database; the rank's file is attached to it.
        tables: those of the rank, as the schema `source`.
        identity: what the rank is called from now on.
        redactor: replaces texts.
        numbers: what stands in place of numbers.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        tables: RankTables,
        identity: NewIdentity,
        redactor: Redactor,
        numbers: Numbers,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._identity = identity
        self._redactor = redactor
        self._numbers = numbers
        self._functions: list[Callable[[Any], str]] = []
        self._columns: list[tuple[str, str]] = []
        self.counts: Counts = Counter()
        connection.create_scalar_function("redacted", self._redacted, 2, deterministic=True)

    def write(self) -> None:
        """Write all tables with their rows and indexes, and the views."""
        self._connection.execute("BEGIN")
        texts: Any = self._connection.execute(
            "SELECT tbl_name, type, sql FROM source.sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL "
            "ORDER BY type DESC"
        ).fetchall()
        for base in self._tables.columns:
            of_table = [(kind, sql) for table, kind, sql in texts if table == base + self._tables.suffix]
            self._connection.execute(self._definition(base, [sql for kind, sql in of_table if kind == "table"]))
            self._connection.execute(f"INSERT INTO main.{self._new_name(base)} {self._select(base)}")
            for sql in (self._identity.in_text(sql) for kind, sql in of_table if kind == "index"):
                if not self._redactor.is_strict and self._redactor.text(sql) == sql:
                    self._connection.execute(sql)
        self._write_views()
        self._connection.execute("COMMIT")

    def count(self) -> None:
        """Count what would be replaced."""
        for base in self._tables.columns:
            for _ in self._connection.execute(self._select(base)):
                pass

    def _definition(self, base: str, texts: Sequence[str]) -> str:
        """Return the text that creates a table: the file's own, or a plain one where that may tell more."""
        for text in map(self._identity.in_text, texts):
            if not self._redactor.is_strict and self._redactor.text(text) == text:
                return text
        types = {column.name: column.declaration.split()[0] for column in table(base).columns} if base in TABLES else {}
        if base not in self._tables.keyless:
            types["id"] = "INTEGER PRIMARY KEY"
        columns = (f"{quote_name(name)} {types.get(name, '')}" for name in self._tables.columns[base])
        return f"CREATE TABLE {self._new_name(base)} ({', '.join(columns)})"

    def _write_views(self) -> None:
        columns = dict(self._tables.columns)
        tables = RankTables(self._identity.suffix, columns)
        for base in columns:
            self._connection.execute(create_view_text(base, f"SELECT * FROM {self._new_name(base)}"))  # noqa: S608
        for name in views_over(columns):
            self._connection.execute(create_view_text(name, select_text(name, [tables])))

    def _new_name(self, base: str) -> str:
        return quote_name(base + self._identity.suffix)

    def _select(self, base: str) -> str:
        items = ", ".join(self._expression(base, column) for column in self._tables.columns[base])
        return f"SELECT {items} FROM {self._tables.rows(base)}"  # noqa: S608 (quoted names)

    def _expression(self, base: str, column: str) -> str:
        name = quote_name(column)
        if column == "guid":
            return quote_text(self._identity.guid)
        number = self._numbers.get((base, column), "{column}").replace("{column}", name)
        key = len(self._columns)
        self._columns.append((base, column))
        redact: Callable[[str], str] = partial(rule(base, column), self._redactor)
        if (base, column) == _DISTINCT:
            redact = _distinct(redact)
        self._functions.append(lru_cache(1 << 16)(lambda raw: redact(self._decoded(raw))))
        empty = ", ".join(map(quote_text, _EMPTY))
        return (
            f"CASE typeof({name}) WHEN 'text' THEN CASE WHEN {name} IN ({empty}) THEN {name} "
            f"ELSE redacted({key}, CAST({name} AS BLOB)) END WHEN 'blob' THEN redacted({key}, {name}) ELSE {number} END"
        )

    def _decoded(self, raw: bytes) -> str:
        return self._identity.in_text(decoded(raw))

    def _redacted(self, *cells: Any) -> str:
        key, raw = cells
        text: str = self._functions[key](raw)
        if text.encode() != raw:
            self.counts[self._columns[key]] += 1
        return text


def _distinct(redact: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function whose answers for different texts differ: a number is added to one that was given before."""
    given: dict[str, str] = {}

    def redacted(text: str) -> str:
        answer = name = redact(text)
        number = 1
        while given.setdefault(answer, text) != text:
            number += 1
            answer = f"{name} #{number}"
        return answer

    return redacted


_SOUGHT = frozenset({Clue.HOST, Clue.MACHINE, Clue.USER, Clue.SECRET, Clue.MAIL, Clue.URL, Clue.GUID, Clue.RULE})
_LEAST = 4  # shorter texts stand in other words by chance


def sought(replaced: Iterable[tuple[Clue, str]]) -> dict[str, Clue]:
    """Return the texts that no file may hold, and what they are; of two of which one holds the other, the shorter."""
    kinds = {text: kind for kind, text in replaced if kind in _SOUGHT and len(text) >= _LEAST}
    shortest: dict[str, Clue] = {}
    for text in sorted(kinds, key=len):
        if not any(other in text for other in shortest):
            shortest[text] = kinds[text]
    return shortest


def find_texts(path: Path, texts: Iterable[str]) -> list[str]:
    """Return those of the texts that a file holds anywhere, as words."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [text for text in texts if _is_word_in(content, text.encode())]


def _is_word_in(content: mmap.mmap, text: bytes) -> bool:
    at = content.find(text)
    while at >= 0:
        around = content[max(at - 1, 0) : at] + content[at + len(text) : at + len(text) + 1]
        if not any(byte < 128 and chr(byte).isalnum() for byte in around):
            return True
        at = content.find(text, at + 1)
    return False


def column_with(path: Path, text: str) -> str:
    """Return the table and column of a file that hold a text, to be named in an error."""
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    try:
        for (name_of_table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            table = str(name_of_table)
            for column in [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quote_name(table)})")]:
                name = quote_name(column)
                sql = f"SELECT 1 FROM {quote_name(table)} WHERE instr({name}, ?) LIMIT 1"  # noqa: S608 (quoted names)
                if connection.execute(sql, (text,)).fetchall():
                    return f"{table}.{column}"
    finally:
        connection.close()
    return "a text of the schema"


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
        UsageError: the file of rules cannot be used, or what is to stay would go all the same.
        OutputError: the folder exists or cannot be written, or a file still holds what should be replaced; then nothing
            is written.
    """
    redactor, numbers, guids = _prepare(session, options)
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


def _prepare(session: Federation, options: RedactOptions) -> tuple[Redactor, Numbers, Mapping[str, str]]:
    """Return what replaces texts, and numbers, and the GUID of a rank -> the one that it gets."""
    options.check()
    pseudonyms = Pseudonyms()
    known, guids = survey(session, pseudonyms, options.keep)
    rules, keep = _rules(options.rules), frozenset(options.keep)
    for guid in guids.values():
        pseudonyms.given.update((guid, suffix_of(guid)))
    if options.level is Level.SHARE:
        return Redactor(pseudonyms, known, keep, rules), NUMBERS, guids
    anew, before = shifts(session, keep)
    in_job = InJob(kernels_and_markers(session, pseudonyms, keep), before)
    return Strict(pseudonyms, known, keep, rules, in_job), {**NUMBERS, **anew}, guids


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


def _copied(tables: RankTables) -> RankTables:
    """Return the tables and columns that strict files have: those of the schema, with the facts that are listed.

    As times count anew, a merged window forgets what lies outside of it.
    """
    columns = {
        base: tuple(column.name for column in table(base).columns if column.name.lower() in map(str.lower, names))
        for base, names in tables.columns.items()
        if base in TABLES
    }
    tags = ", ".join(map(quote_text, sorted(allowed().tags)))
    listed = f"tag IN ({tags})" if "tag" in columns.get("rocpd_metadata", ()) else "0"
    return replace(tables, columns=columns, only={**tables.only, "rocpd_metadata": listed})


def _copy(
    session: Federation, identity: NewIdentity, redactor: Redactor, numbers: Numbers, path: Path | None
) -> Counts:
    rank = identity.old
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(str(path or ":memory:"), flags)
    try:
        with as_input_error(rank.opening.path), writing(connection):
            connection.pragma("synchronous", 0)
            connection.pragma("ignore_check_constraints", True)  # rows are copied as they are, not judged
            connection.execute("ATTACH ? AS source", (rank.opening.uri,))
            tables = session.rank_tables(rank.number, "source")
            if redactor.is_strict:
                tables = _copied(tables)
            copy = RankCopy(connection, tables, identity, redactor, numbers)
            if path:
                copy.write()
            else:
                copy.count()
        return copy.counts
    except apsw.ConstraintError as error:  # of the file's own tables
        raise InputError(f"{rank.opening.path}: damaged: {error}", "--skip-bad may leave it out") from error
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
