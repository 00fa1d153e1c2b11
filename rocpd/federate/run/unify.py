"""Owns the temporary views that make many ranks look like one database; only those that a statement names.

Never touches the files: the views live in the connection's temp schema. The text comes from `schema.render`.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from rocpd.schema.keyed import keyed_text, keyed_views
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables, named, relations, select_text
from rocpd.schema.write import create_view_text


class Unifier:
    """Creates views over `parts` on `connection` when statements first name them.

    `keyed`: those of `schema.keyed` too, which see the first part.
    """

    def __init__(self, connection: apsw.Connection, parts: Sequence[RankTables], *, keyed: bool = False) -> None:
        self._connection = connection
        self._keyed = keyed
        self.parts = parts
        self.relations = relations(parts)
        self._done: set[str] = set()

    def prepare(self, sql: str) -> None:
        """Create the views that `sql` names and that are not there yet."""
        for name in named(sql, self.relations):
            if name not in self._done:
                self._connection.execute(create_view_text(name, select_text(name, self.parts), temporary=True))
                self._done.add(name)
        for name in keyed_views(sql) if self._keyed else ():
            text = create_view_text(name, keyed_text(name, self.parts[0], sql), temporary=True)
            if name in self._done:
                self._connection.execute(f"DROP VIEW temp.{quote_name(name)}")
            self._connection.execute(text)
            self._done.add(name)

    def drop(self) -> None:
        """Drop the views that were created."""
        for name in self._done:
            self._connection.execute(f"DROP VIEW temp.{quote_name(name)}")
        self._done.clear()
