"""Lists the tables that SQL knows besides those of files: tables of analyses, in the schema `summary`, and others.

Light: the declaration of a table is imported when a statement names it, or when its columns are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rocpd.base import entries
from rocpd.schema.calculated import bare
from rocpd.schema.load import TABLES as BASE_TABLES
from rocpd.schema.load import VIEWS
from rocpd.summary.registry import TABLES

if TYPE_CHECKING:
    from rocpd.federate.relation import Relation


FACTS = (
    "agent_time",
    "operations",
    "launches",
    "nested_calls",
    "rank_steps",
    "collective_members",
    "collective_waits",
    "memory_use",
)
"""Facts of ranks, as tables."""


def _load(home: str) -> Relation:
    relation: Relation = entries.load(home, home)
    return relation


def _of_summary(name: str) -> Relation:
    from rocpd.summary.reading import relation_of

    return relation_of(name)


RELATIONS: Mapping[str, Callable[[], Relation]] = {
    **{name: partial(_load, f"rocpd.facts.tables:{name.upper()}") for name in FACTS},
    "metrics": partial(_load, "rocpd.summary.counters.metrics:METRICS"),
    **{f"summary.{table.replace('-', '_')}": partial(_of_summary, table) for table in TABLES},
}
"""Name, as lists show it -> function that loads the table; the names are unique without their schema, too."""

BARE = tuple(bare(name) for name in RELATIONS if bare(name) not in (*VIEWS, *BASE_TABLES))
"""Names that SQL finds without a schema, too, as no view and no table of files has them."""


def find(name: str) -> str | None:
    """Return the table that SQL finds by a name, as lists show it; None: a view, a table of files, or no table.

    >>> find("budget"), find("SUMMARY.budget"), find("metrics"), find("summary.kernels"), find("kernels")
    ('summary.budget', 'summary.budget', 'metrics', 'summary.kernels', None)
    """
    wanted = name.lower()
    names = (wanted, f"summary.{wanted}") if wanted in BARE else (wanted,)
    return next((each for each in names if each in RELATIONS), None)
