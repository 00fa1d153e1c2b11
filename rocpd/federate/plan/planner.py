"""Owns deciding how a statement runs: rows per rank, partial aggregates per rank, or attached as written.

Takes a SELECT apart only when every rank can answer its share alone and the shares add up to SQLite's own answer;
when in doubt the statement runs attached. Never runs anything but empty statements on a skeleton without rows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import apsw

from rocpd.federate.plan.lower import Lowered, Lowering, Sharded
from rocpd.federate.plan.skeleton import Skeleton
from rocpd.federate.plan.sqltext import Unfaithful, name_parameters, read_select, text_of
from rocpd.federate.plan.steps import Plan, Strategy
from rocpd.schema.render import RankTables

_OWN = re.compile(r"\b(?:gathered_|keyed__|lookup__|rows_of_share|rocpd_p\d)", re.I)


def plan(sql: str, parts: Sequence[RankTables], positional: int = 0) -> Plan:
    """Decide how `sql` runs over `parts`.

    Args:
        sql: what the user wrote.
        parts: the ranks.
        positional: how many positional parameters were given with it.
    """
    try:
        if _OWN.search(sql):
            raise Unfaithful("a name that plans use for themselves")
        named_sql, parameters = name_parameters(sql)
        if parameters != positional:
            raise Unfaithful("parameters and values differ in number")
        tree = read_select(named_sql)
        skeleton = Skeleton(parts)
        columns = skeleton.columns(sql, (0,) * positional)
        lowering = Lowering(skeleton)
        result = lowering.lower(tree, {})
    except Unfaithful as reason:
        return Plan(Strategy.ATTACHED, str(reason), sql)
    except (apsw.Error, RecursionError) as error:
        return Plan(Strategy.ATTACHED, f"SQLite: {error}", sql)
    return _finish(Plan(Strategy.AUTO, "", named_sql, parameters, columns), lowering, result)


def _finish(begun: Plan, lowering: Lowering, result: Lowered) -> Plan:
    if isinstance(result, Sharded):
        return dataclasses.replace(
            begun,
            strategy=Strategy.ROWS,
            reason="every rank answers with its own rows",
            steps=tuple(lowering.steps),
            final=text_of(result.tree),
            reads=tuple(sorted(result.reads)),
        )
    *steps, last = lowering.steps
    return dataclasses.replace(
        begun,
        strategy=Strategy.AGGREGATES,
        reason="every rank answers with its share, and the shares are put together",
        steps=tuple(steps),
        final=last.select,
    )
