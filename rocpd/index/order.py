"""Finds out whether SQLite returns rows of a rank in their stored order, or groups in the order of their terms.

SQLite promises no order without ORDER BY, and none among equal rows. But its query plan for a rank determines the
order, and showing the plan takes a thousandth of the time of reading: https://sqlite.org/eqp.html. A plan with a line
that is unknown here counts as another order.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from rocpd.base import InputError, QueryError, frozen
from rocpd.federate.limits import Limits
from rocpd.federate.run.shares import PlanLine, Pool, RankQuestion, Request, Share, ShareDatabase
from rocpd.index.entries import IndexEntry
from rocpd.schema.load import ViewTable
from rocpd.schema.render import RankTables

_MOST_KINDS = 16  # kinds of ranks, which differ in their indexes, or in the form of their window
_LOOP = re.compile(r"(?:SCAN|SEARCH) (\S+)(?: .*)?")
_ROWID = " USING INTEGER PRIMARY KEY ("
_UNIQUE = re.compile(r" USING (?:COVERING )?INDEX (sqlite_autoindex_\w+) \((\w+=\?(?: AND \w+=\?)*)\)")
_INNER = re.compile(r"COMPOUND QUERY|LEFT-MOST SUBQUERY|UNION ALL|(?:CO-ROUTINE|MATERIALIZE) (\S+)")
_OF_VALUES = re.compile(r"(?:CORRELATED )?(?:SCALAR|LIST) SUBQUERY \d+")
_NO_CHANGE = re.compile(r"SCAN CONSTANT ROW|BLOOM FILTER ON .*|USE TEMP B-TREE FOR (?:DISTINCT|.*ORDER BY)")
_SORTED_GROUPS = "USE TEMP B-TREE FOR GROUP BY"
_LISTED = re.compile(r"IN \(([-\d, ]+)\)")


@frozen
class Order:
    """The expected order of the rows of a statement.

    Args:
        tables: tables of the view, which has a row for each row of the first table. Empty: the rows are groups, in the
            order of their terms.
        has_choices: the statement has IN, OR or IS, for which SQLite may return rows value by value.
    """

    tables: tuple[ViewTable, ...] = ()
    has_choices: bool = False


class RankOrders:
    """Asks SQLite for its plan, once for each kind of ranks.

    Args:
        entries: rank number -> its entry.
    """

    def __init__(self, entries: Mapping[int, IndexEntry]) -> None:
        self._entries = entries
        self._pool = Pool(Limits(idle_connections=_MOST_KINDS))
        self._last: tuple[Sequence[Share], list[_Kind]] | None = None
        self._lock = threading.Lock()

    def is_kept(self, order: Order, question: RankQuestion, shares: Sequence[Share]) -> bool:
        """Whether SQLite returns the answers of all ranks in an order."""
        with self._lock:
            kinds = self._kinds(shares)
            return len(kinds) <= _MOST_KINDS and all(self._is_kept(order, question, *kind) for kind in kinds)

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._pool.close()

    def _kinds(self, shares: Sequence[Share]) -> list[_Kind]:
        """Return one rank of each kind, with the plans of all ranks of the kind; many calls have the same selection."""
        if self._last is None or self._last[0] is not shares:
            kinds: dict[object, _Kind] = {}
            for share in shares:
                for tables in share.tables:
                    schema = "" if tables.rank is None else self._entries[tables.rank].schema
                    kinds.setdefault((schema, *_form(tables)), (share, tables))
            self._last = shares, list(kinds.values())
        return self._last[1]

    def _is_kept(self, order: Order, question: RankQuestion, share: Share, tables: RankTables) -> bool:
        try:
            with self._pool.lend(share) as database:
                plan = _without_values(Request(question).plan(database, tables))
                if not order.tables:
                    return any(line.detail == _SORTED_GROUPS for line in plan)
                main = order.tables[0].table
                if main not in tables.columns:
                    return True  # the rank has no rows
                return main in tables.by_id and _Plan(order, database, tables).is_in_order(plan)
        except (QueryError, InputError):  # the ranks will raise it, too
            return False


_Kind: TypeAlias = tuple[Share, RankTables]


def _form(tables: RankTables) -> tuple[object, ...]:
    """Return the conditions of a selection without their numbers, which are equal for ranks with the same plans."""
    texts = (repr(sorted(each.items())).replace(tables.suffix, "") for each in (tables.only, tables.values))
    listed = (_LISTED.sub(lambda match: "IN (N, N)" if "," in match[1] else "IN (N)", text) for text in texts)
    return *(re.sub(r"\d{2,}", "N", text) for text in listed), tables.is_whole


def _without_values(plan: Sequence[PlanLine]) -> list[PlanLine]:
    """Return a plan without subqueries that compute values, whose order does not matter."""
    inside: set[int] = set()
    kept = []
    for line in plan:
        if line.parent in inside or _OF_VALUES.fullmatch(line.detail):
            inside.add(line.number)
        else:
            kept.append(line)
    return kept


class _Plan:
    """Reads the plan of a SELECT from one view, or from one table."""

    def __init__(self, order: Order, database: ShareDatabase, tables: RankTables) -> None:
        self._order = order
        self._database = database
        names = {each.alias: each for each in order.tables}
        self._tables = names | {each.table + tables.suffix: each for each in order.tables[:1]}
        self._subqueries: set[str] = set()

    def is_in_order(self, plan: Sequence[PlanLine]) -> bool:
        """Whether each SELECT of the plan reads its rows in the stored order of the view."""
        loops: dict[int, list[str]] = {}
        for line in plan:
            if inner := _INNER.fullmatch(line.detail):
                self._subqueries.update(filter(None, inner.groups()))
            elif not _NO_CHANGE.fullmatch(line.detail):
                loops.setdefault(line.parent, []).append(line.detail)
        return all(map(self._reads_in_order, loops.values()))

    def _reads_in_order(self, loops: Sequence[str]) -> bool:
        """Whether nested loops, the outermost first, meet the rows of the view's first table in their order.

        Loops inside the loop of that table meet at most one row, or the view would have several rows for one of it.
        """
        names = [match[1] if (match := _LOOP.fullmatch(loop)) else "" for loop in loops]
        if len(loops) == 1 and loops[0] == f"SCAN {names[0]}" and names[0] in self._subqueries:
            return True
        if not all(name in self._tables for name in names):
            return False
        for loop, name in zip(loops, names, strict=True):
            if self._tables[name] == self._order.tables[0]:
                return loop == f"SCAN {name}" or loop.startswith(f"SEARCH {name}{_ROWID}")
            if not self._is_of_one_row(loop):
                return False
        return False

    def _is_of_one_row(self, loop: str) -> bool:
        """Whether a loop outside the loop of the first table meets at most one row, so that it has no order."""
        if self._order.has_choices or not loop.startswith("SEARCH "):
            return False
        if (unique := _UNIQUE.search(loop)) is None:
            return f"{_ROWID}rowid=?)" in loop
        columns = list(self._database.connection.execute("SELECT 1 FROM pragma_index_info(?)", (unique[1],)))
        return len(columns) == unique[2].count("=?")
