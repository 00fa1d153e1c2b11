"""Decides how a statement runs: rows per rank, partial aggregates per rank, or attached as written.

Takes a SELECT apart only if every rank can answer its part alone and the parts add up to SQLite's own answer; when in
doubt the statement runs attached. Runs statements only on a skeleton without rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rocpd.base.sqlite import apsw
from rocpd.federate.plan.lower import Lowering, Sharded
from rocpd.federate.plan.skeleton import Skeleton
from rocpd.federate.plan.sqltext import Unfaithful, name_parameters, read_select, text_of
from rocpd.federate.plan.steps import Plan, Strategy
from rocpd.schema.calculated import bare
from rocpd.schema.render import RankTables

_RESERVED = re.compile(r"\b(?:gathered_|keyed__|lookup__|rows_of_share|rocpd_p\d)", re.I)


def plan(sql: str, ranks: Sequence[RankTables], positional: int = 0, calculated: Iterable[str] = ()) -> Plan:
    """Decide how a statement runs.

    Args:
        sql: what the user wrote.
        ranks: the tables of each rank.
        positional: number of positional parameters.
        calculated: names of tables that no rank has.
    """
    try:
        if _RESERVED.search(sql):
            raise Unfaithful("a name that plans use for themselves")
        named_sql, parameters = name_parameters(sql)
        if parameters != positional:
            raise Unfaithful("parameters and values differ in number")
        tree = read_select(named_sql)
        skeleton = Skeleton(ranks)
        columns = skeleton.columns(sql, (0,) * positional)
        lowering = Lowering(skeleton)
        result = lowering.lower(tree, {})
    except Unfaithful as reason:
        return Plan(Strategy.ATTACHED, str(reason), sql)
    except (apsw.Error, RecursionError) as error:
        table = bare(str(error).removeprefix("no such table: ").lower())
        is_calculated = table in map(bare, calculated)
        why = f"{table} is calculated from all ranks together" if is_calculated else f"SQLite: {error}"
        return Plan(Strategy.ATTACHED, why, sql)
    if isinstance(result, Sharded):
        why, steps, final = "every rank returns its own rows", tuple(lowering.steps), text_of(result.tree)
        return Plan(Strategy.ROWS, why, named_sql, columns, steps, final, tuple(sorted(result.reads)))
    *first_steps, last = lowering.steps
    why = "every rank returns partial results, which are combined"
    return Plan(Strategy.AGGREGATES, why, named_sql, columns, tuple(first_steps), last.select)
