"""Writes one rank anew, table by table, with every text redacted. Never copies a page: no old text can survive.

Numbers stay as they are, but for those that identify a machine, and in strict ones times and addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias

from rocpd.federate.open.identify import Rank
from rocpd.frozen import frozen
from rocpd.redact.columns import rule
from rocpd.redact.texts import Redactor
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import RankTables, select_text, views_over
from rocpd.schema.versions import suffix_of
from rocpd.schema.write import create_view_text
from rocpd.sqlite import apsw

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
            self._execute_all(self._identity.in_text(sql) for kind, sql in of_table if kind == "table")
            self._connection.execute(f"INSERT INTO main.{self._new_name(base)} {self._select(base)}")
            self._execute_all(self._identity.in_text(sql) for kind, sql in of_table if kind == "index")
        self._write_views()
        self._connection.execute("COMMIT")

    def count(self) -> None:
        """Count what would be replaced."""
        for base in self._tables.columns:
            for _ in self._connection.execute(self._select(base)):
                pass

    def _execute_all(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._connection.execute(text)

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
        return self._identity.in_text(raw.decode("utf-8", "backslashreplace"))

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
