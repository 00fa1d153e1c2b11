"""One connection with all files attached.

Never renders views (`unify` does) and never decides how a file is opened (`opening` did).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocpd.base.sqlite import apsw
from rocpd.federate.open.guard import guard
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening, as_input_error
from rocpd.federate.run.functions import add_functions
from rocpd.federate.unify import Unifier
from rocpd.schema.render import RankTables

ATTACH_LIMIT = apsw.Connection(":memory:").limit(apsw.SQLITE_LIMIT_ATTACHED)
"""How many files this SQLite can attach to one connection."""


def schemas_of(ranks: Iterable[Rank]) -> dict[Opening, str]:
    """Return the schema name of each file on the attached connection."""
    return {opening: f"f{index}" for index, opening in enumerate(dict.fromkeys(rank.opening for rank in ranks))}


def attached(ranks: Sequence[Rank], tables: Sequence[RankTables], busy_ms: int) -> Unifier:
    """Return the views over `tables` on an in-memory connection with the files of all ranks attached read-only."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(":memory:", flags=flags)
    try:
        connection.set_busy_timeout(busy_ms)
        for opening, schema in schemas_of(ranks).items():
            with as_input_error(opening.path):
                connection.execute(f"ATTACH ? AS {schema}", (opening.uri,))
        guard(connection)
        add_functions(connection)
    except BaseException:
        connection.close()
        raise
    return Unifier(connection, tables)
