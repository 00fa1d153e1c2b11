"""What a merged window keeps of the trace around it, so that it answers as the window did.

Numbers of steps and collectives, members of collectives that ran before or after, calls that launched work of the
window, what was allocated before it, what agents did next: these rows go to tables of their own (`rocpd_outside_region`
…), which only readers of the whole trace see. The window itself goes to the metadata. Knows no file: conditions alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.federate.select.part import Part
from rocpd.schema.render import RankTables, outside_of
from rocpd.trace.kernel_categories import is_communication, load
from rocpd.trace.kernel_names import names_of_kernels
from rocpd.trace.markers import marker_categories
from rocpd.trace.tables import OPERATIONS
from rocpd.trace.times import LAST, VALID_TIMES

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import RankReader

_SPANS = {*OPERATIONS, "rocpd_region"}


def outside_conditions(reader: RankReader, tables: RankTables, part: Part) -> dict[str, str]:
    """Return base table -> condition on the rows that are not selected and still needed.

    Args:
        reader: reads the rank.
        tables: its tables, with the conditions on what is selected, as the statement names them.
        part: what counts of the rank.
    """
    rows = reader.whole().rows(names_of_kernels())
    categories = load(None)
    communication = [kernel for kernel, name in rows if is_communication(categories.of(name))]
    kernels = f"kernel_id IN ({', '.join(str(int(kernel)) for kernel in communication)})"
    needed = {
        "rocpd_kernel_dispatch": f"{kernels} OR {_nearest(tables, 'rocpd_kernel_dispatch', 'agent_id', part)}",
        "rocpd_memory_copy": _nearest(tables, "rocpd_memory_copy", "dst_agent_id, src_agent_id", part),
    }
    if part.start is not None:
        allowed = tables.filtered.get("rocpd_memory_allocate", "1")
        needed["rocpd_memory_allocate"] = f"start < {part.start} AND ({allowed})"
    event, string = tables.name("rocpd_event"), tables.name("rocpd_string")
    work = [
        f"SELECT event_id FROM {tables.name(base)} WHERE ({tables.only.get(base, '1')}) OR ({needed[base]})"
        for base in OPERATIONS
        if base in tables.columns
    ]
    # What an earlier window kept may have been launched in it.
    kept = [outside_of(base) for base in OPERATIONS if outside_of(base) in tables.columns]
    work += [f"SELECT event_id FROM {tables.name(base)}" for base in kept]
    stacks = f"SELECT stack_id FROM {event} WHERE stack_id > 0 AND id IN ({' UNION ALL '.join(work)})"
    rccl = f"name_id IN (SELECT id FROM {string} WHERE string GLOB 'nccl*')"
    of_events = f"category_id IN ({marker_categories(string)}) OR stack_id IN ({stacks})"
    needed["rocpd_region"] = f"{rccl} OR event_id IN (SELECT id FROM {event} WHERE {of_events})"
    calls = f"SELECT event_id FROM {tables.every_row('rocpd_region')} WHERE {rccl}"
    needed["rocpd_arg"] = f"event_id IN ({calls})"
    conditions = {
        base: f"({condition}) AND ({tables.only[base]}) IS NOT 1"
        for base, condition in needed.items()
        if base in tables.columns and base in tables.only
    }
    for base in conditions.keys() & _SPANS:
        conditions[base] += f" OR {_across(part)} AND (({tables.only[base]}) IS NOT 1 OR {int(base in tables.values)})"
    return conditions


def _across(part: Part) -> str:
    """Return the condition on events that cross an edge of the window."""
    low, high = part.start or 0, LAST if part.end is None else part.end
    return f'({VALID_TIMES} AND start < {high} AND "end" > {low} AND (start < {low} OR "end" > {high}))'


def _nearest(tables: RankTables, base: str, agents: str, part: Part) -> str:
    """Return the condition on what each agent and stream did last before the window, and next after it."""
    sides = []
    for time, choose, side in (("start <", "MAX", part.start), ("start >=", "MIN", part.end)):
        if side is not None:
            rows = f"SELECT id, {choose}(start) FROM {tables.name(base)} WHERE {VALID_TIMES} AND {time} {side}"
            sides.append(f"id IN (SELECT id FROM ({rows} GROUP BY {agents}, stream_id))")
    return " OR ".join(sides) or "0"
