"""Temporary views that make many ranks look like one database, created when a statement names them.

Never touches the files: the views live in the connection's temp schema. Their text comes from `schema.render`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocpd.base.sqlite import apsw, naming_view
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, create_view_text, keyed_text, keyed_views, named, relations, select_text


class Unifier:
    """Creates views over the tables of ranks on a connection when statements first name them.

    `keyed`: also creates the views that make grouping by name fast; these show the first rank only.
    """

    def __init__(self, connection: apsw.Connection, tables: Sequence[RankTables], *, keyed: bool = False) -> None:
        self.connection = connection
        self._keyed = keyed
        self.tables = tables
        self.relations = relations(tables)
        self._created: set[str] = set()

    def prepare(self, sql: str) -> None:
        """Create the views that `sql` names and that do not exist yet."""
        for name in named(sql, self.relations):
            if name not in self._created:
                with naming_view(name):
                    self._create(name, select_text(name, self.tables))
        for name in keyed_views(sql) if self._keyed else ():
            text = keyed_text(name, self.tables[0], sql)
            if name in self._created:
                self.connection.execute(f"DROP VIEW temp.{quote_name(name)}")
            self._create(name, text)

    def _create(self, name: str, select: str) -> None:
        self.connection.execute(create_view_text(name, select, temporary=True))
        self._created.add(name)

    def drop(self) -> None:
        """Drop the views that were created."""
        for name in self._created:
            self.connection.execute(f"DROP VIEW temp.{quote_name(name)}")
        self._created.clear()
