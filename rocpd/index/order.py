"""Whether SQLite gives rows of a rank in the order in which they are stored, or groups in that of their terms.

SQLite promises no order without ORDER BY, and none among equal rows. But what it does is settled by its query plan for
a rank, which it shows for a thousandth of the time of reading: https://sqlite.org/eqp.html. Whatever a plan has that is
not known here counts as another order.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

from rocpd.errors import QueryError
from rocpd.federate.run.columnar import RankQuestion
from rocpd.federate.run.pool import Share, ShareDatabase
from rocpd.federate.run.request import PlanLine, Request
from rocpd.frozen import frozen
from rocpd.index.entries import IndexEntry
from rocpd.schema.load import ViewTable
from rocpd.schema.render import RankTables

_MOST_KINDS = 16  # of ranks that differ in their indexes, or in the form of their window
_LOOP = re.compile(r"(?:SCAN|SEARCH) (\S+)(?: .*)?")
_ROWID = " USING INTEGER PRIMARY KEY ("
_UNIQUE = re.compile(r" USING (?:COVERING )?INDEX (sqlite_autoindex_\w+) \((\w+=\?(?: AND \w+=\?)*)\)")
_INNER = re.compile(r"COMPOUND QUERY|LEFT-MOST SUBQUERY|UNION ALL|(?:CO-ROUTINE|MATERIALIZE) (\S+)")
_OF_VALUES = re.compile(r"(?:CORRELATED )?(?:SCALAR|LIST) SUBQUERY \d+")
_NO_CHANGE = re.compile(r"SCAN CONSTANT ROW|BLOOM FILTER ON .*|USE TEMP B-TREE FOR (?:DISTINCT|.*ORDER BY)")
_SORTED_GROUPS = "USE TEMP B-TREE FOR GROUP BY"


@frozen
class Order:
    """The order that the rows of a statement are taken to have.

    Args:
        tables: of the view whose rows they are, in its order: the first has a row for each of them. None: the rows are
            groups, in the order of their terms.
        has_choices: the statement has IN or OR, by which SQLite may find the rows of one value after those of another.
    """

    tables: tuple[ViewTable, ...] = ()
    has_choices: bool = False


class RankOrders:
    """Asks SQLite for its plan, once for ranks that are alike.

    Args:
        entries: rank number -> its entry.
    """

    def __init__(self, entries: Mapping[int, IndexEntry]) -> None:
        self._entries = entries
        self._databases: dict[Share, ShareDatabase] = {}
        self._lock = threading.Lock()

    def is_kept(self, order: Order, question: RankQuestion, shares: Sequence[Share]) -> bool:
        """Return whether SQLite gives the answers of all ranks in an order."""
        kinds: dict[object, tuple[Share, RankTables]] = {}
        for share in shares:
            for tables in share.tables:
                kinds.setdefault(self._kind(tables), (share, tables))
        if len(kinds) > _MOST_KINDS:
            return False
        with self._lock:
            return all(self._is_kept(order, question, *of_kind) for of_kind in kinds.values())

    def close(self) -> None:
        """Close the connections; idempotent."""
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases.clear()

    def _kind(self, tables: RankTables) -> object:
        """Return what ranks with the same plans have in common: conditions of a window differ in their numbers."""
        schema = "" if tables.rank is None else self._entries[tables.rank].schema
        forms = (re.sub(r"\d{2,}", "N", repr(sorted(each.items()))) for each in (tables.only, tables.values))
        return schema, *forms, tables.is_whole

    def _is_kept(self, order: Order, question: RankQuestion, share: Share, tables: RankTables) -> bool:
        if share not in self._databases:
            self._databases[share] = ShareDatabase(share)
        database = self._databases[share]
        try:
            plan = Request(question).plan(database, tables)
        except QueryError:  # which the ranks will raise
            return False
        if not order.tables:
            return any(line.detail == _SORTED_GROUPS for line in plan)
        main = order.tables[0].table
        if main not in tables.columns:
            return True  # the rank has no rows
        has_ids = database.has_key(main + tables.suffix)  # in the order of which rows are stored
        return has_ids and _Plan(order, database, tables).is_in_order(plan)


class _Plan:
    """Reads the plan of a SELECT from one view, or from one table."""

    def __init__(self, order: Order, database: ShareDatabase, tables: RankTables) -> None:
        self._order = order
        self._database = database
        names = {each.alias: each for each in order.tables}
        self._tables = names | {each.table + tables.suffix: each for each in order.tables[:1]}
        self._subqueries: set[str] = set()

    def is_in_order(self, plan: Sequence[PlanLine]) -> bool:
        """Whether each SELECT of the plan reads its rows in the order in which the view stores them."""
        skipped: set[int] = set()
        loops: dict[int, list[str]] = {}
        for line in plan:
            inner = _INNER.fullmatch(line.detail)
            if line.parent in skipped or _OF_VALUES.fullmatch(line.detail):
                skipped.add(line.number)
            elif inner:
                self._subqueries.update(filter(None, inner.groups()))
            elif not _NO_CHANGE.fullmatch(line.detail):
                loops.setdefault(line.parent, []).append(line.detail)
        return all(map(self._reads_in_order, loops.values()))

    def _reads_in_order(self, loops: Sequence[str]) -> bool:
        """Whether nested loops, the outermost first, meet the rows of the first table of the view in their order."""
        names = [match[1] if (match := _LOOP.fullmatch(loop)) else "" for loop in loops]
        if len(loops) == 1 and loops[0] == f"SCAN {names[0]}" and names[0] in self._subqueries:
            return True
        if not all(name in self._tables for name in names):
            return False
        tables = [self._tables[name] for name in names]
        start = next((i for i, loop in enumerate(loops) if not self._is_of_one_row(loop, tables[i])), len(loops) - 1)
        is_main = tables[start] == self._order.tables[0]
        ways = (f"SCAN {names[start]}", f"SEARCH {names[start]}{_ROWID}")
        reads_by_id = loops[start] == ways[0] or loops[start].startswith(ways[1])
        return is_main and reads_by_id and self._keep_order(loops[start + 1 :], tables[start + 1 :])

    def _is_of_one_row(self, loop: str, table: ViewTable) -> bool:
        """Whether a loop before that of the first table meets one row at most, so that it has no order."""
        if table == self._order.tables[0] or self._order.has_choices or not loop.startswith("SEARCH "):
            return False
        unique = _UNIQUE.search(loop)
        if unique is None:
            return f"{_ROWID}rowid=?)" in loop
        columns = list(self._database.connection.execute("SELECT 1 FROM pragma_index_info(?)", (unique[1],)))
        return len(columns) == unique[2].count("=?")

    def _keep_order(self, loops: Sequence[str], tables: Sequence[ViewTable]) -> bool:
        """Whether loops inside of that of the first table keep its order: joined by key, each meets one row at most."""
        if all(each.key for each in self._order.tables[1:]):
            return True
        # Several rows of a table that is joined by another column come in the order of that table's ids.
        by_id = re.compile(r"SCAN \S+|SEARCH \S+ USING AUTOMATIC .*")
        in_order = [self._order.tables.index(table) for table in tables]
        return in_order == sorted(in_order) and all(
            table.key or by_id.fullmatch(loop) for loop, table in zip(loops, tables, strict=True)
        )
