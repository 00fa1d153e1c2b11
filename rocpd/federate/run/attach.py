"""One connection with all files attached.

Never renders views (`unify` does) and never decides how a file is opened (`opening` did).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from rocpd.federate.open.guard import guard
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening, as_input_error
from rocpd.federate.run.unify import Unifier
from rocpd.schema.render import RankTables

ATTACH_LIMIT = apsw.Connection(":memory:").limit(apsw.SQLITE_LIMIT_ATTACHED)
"""How many files this SQLite can attach to one connection."""


def schemas_of(ranks: Iterable[Rank]) -> dict[Opening, str]:
    """Return the schema name of each file on the attached connection."""
    return {opening: f"f{index}" for index, opening in enumerate(dict.fromkeys(rank.opening for rank in ranks))}


class Attached:
    """One in-memory connection with the files of all ranks attached read-only."""

    def __init__(self, ranks: Sequence[Rank], tables: Sequence[RankTables], busy_ms: int) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        self.connection = apsw.Connection(":memory:", flags=flags)
        try:
            self.connection.set_busy_timeout(busy_ms)
            for opening, schema in schemas_of(ranks).items():
                with as_input_error(opening.path):
                    self.connection.execute(f"ATTACH ? AS {schema}", (opening.uri,))
            guard(self.connection)
        except BaseException:
            self.connection.close()
            raise
        self._unifier = Unifier(self.connection, tables)

    def prepare(self, sql: str) -> None:
        """Create the views that `sql` names."""
        self._unifier.prepare(sql)
