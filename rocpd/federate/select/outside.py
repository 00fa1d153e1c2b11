"""Events around a window that a merged file keeps, so that its analyses answer as those of the window did.

They give the numbers of steps and collectives, members of collectives that ran before or after, calls that launched
work of the window or allocated in it, memory allocated before it and the calls that free it, the last work of agents
and threads before it and their next work. These rows go to tables of their own (`rocpd_outside_region` …), which only
readers of the whole trace see. The window itself goes to the metadata. Knows conditions only, no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocpd.federate.select.selection import Part
from rocpd.schema.render import RankTables, outside_of
from rocpd.schema.rules.categories import marker_categories
from rocpd.schema.rules.events import LAST, NOT_SCRATCH, OPERATIONS, VALID_TIMES
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.rules.kernel_names import names_of_kernels

if TYPE_CHECKING:
    from rocpd.federate.run.rank_reader import RankReader

_ALLOCATIONS = "rocpd_memory_allocate"
_SPANS = {*OPERATIONS, "rocpd_region"}
_LINKED = (*OPERATIONS, _ALLOCATIONS)


def outside_conditions(reader: RankReader, tables: RankTables, part: Part) -> dict[str, str]:
    """Return base table -> condition on the rows that are not selected but needed.

    Args:
        reader: reads the rank.
        tables: its tables, with the conditions on selected rows, as the statement names them.
        part: the part of the rank's time that counts.
    """
    rows = reader.whole().rows(names_of_kernels())
    categories = load(None)
    communication = [kernel for kernel, name in rows if is_communication(categories.of(name))]
    kernels = f"kernel_id IN ({', '.join(str(int(kernel)) for kernel in communication)})"
    needed = {
        "rocpd_kernel_dispatch": f"{kernels} OR {_nearest(tables, 'rocpd_kernel_dispatch', 'agent_id', part)}",
        "rocpd_memory_copy": _nearest(tables, "rocpd_memory_copy", "dst_agent_id, src_agent_id", part),
    }
    allowed = tables.filtered.get(_ALLOCATIONS, "1")
    until = part.start if part.end is None else part.end  # they count by their start, and may cross the end
    before = "0" if until is None else f"start < {until} AND ({allowed})"
    needed[_ALLOCATIONS] = f"{before} OR {_freeing(tables, part)}"
    event, string, across = tables.name("rocpd_event"), tables.name("rocpd_string"), _across(part)
    work = [
        f"SELECT event_id FROM {tables.name(base)} WHERE ({tables.only.get(base, '1')}) OR ({needed[base]}) OR {across}"
        for base in _LINKED
        if base in tables.columns
    ]
    # Events that an earlier window kept may have been launched in this one.
    outside = [outside_of(base) for base in _LINKED if outside_of(base) in tables.columns]
    work += [f"SELECT event_id FROM {tables.name(base)}" for base in outside]
    stacks = f"SELECT stack_id FROM {event} WHERE stack_id > 0 AND id IN ({' UNION ALL '.join(work)})"
    rccl = f"name_id IN (SELECT id FROM {string} WHERE string GLOB 'nccl*')"
    of_events = f"category_id IN ({marker_categories(string)}) OR stack_id IN ({stacks})"
    of_threads = _nearest_calls(tables, part)
    needed["rocpd_region"] = f"{rccl} OR event_id IN (SELECT id FROM {event} WHERE {of_events}) OR {of_threads}"
    calls = f"SELECT event_id FROM {tables.every_row('rocpd_region')} WHERE {rccl}"
    needed["rocpd_arg"] = f"event_id IN ({calls})"
    conditions = {
        base: f"({condition}) AND ({tables.only[base]}) IS NOT 1"
        for base, condition in needed.items()
        if base in tables.columns and base in tables.only
    }
    for base in conditions.keys() & _SPANS:
        conditions[base] += f" OR {across} AND (({tables.only[base]}) IS NOT 1 OR {int(base in tables.values)})"
    return conditions


def _across(part: Part) -> str:
    """Return the condition on events that cross an edge of the window."""
    low, high = part.start or 0, LAST if part.end is None else part.end
    return f'({VALID_TIMES} AND start < {high} AND "end" > {low} AND (start < {low} OR "end" > {high}))'


def _nearest(tables: RankTables, base: str, agents: str, part: Part) -> str:
    """Return the condition on the last work of each agent and stream before the window, and the next after it."""
    sides = []
    for time, choose, side in (("start <", "MAX", part.start), ("start >=", "MIN", part.end)):
        if side is not None:
            rows = f"SELECT id, {choose}(start) FROM {tables.name(base)} WHERE {VALID_TIMES} AND {time} {side}"
            sides.append(f"id IN (SELECT id FROM ({rows} GROUP BY {agents}, stream_id))")
    return " OR ".join(sides) or "0"


def _freeing(tables: RankTables, part: Part) -> str:
    """Return the condition on rows after the window that first free or reuse memory allocated until its end."""
    if part.end is None or _ALLOCATIONS not in tables.columns:
        return "0"
    name = tables.name(_ALLOCATIONS)
    until = f"SELECT COALESCE(address, 0) FROM {name} WHERE start < {part.end}"
    rows = f"SELECT id, MIN(start) FROM {name} WHERE {VALID_TIMES} AND {NOT_SCRATCH} AND start >= {part.end}"
    among = f"COALESCE(address, 0) IN ({until}) GROUP BY level, address, agent_id, queue_id"
    return f"id IN (SELECT id FROM ({rows} AND {among}))"


def _nearest_calls(tables: RankTables, part: Part) -> str:
    """Return the condition on the calls of each thread that end last before the window and start first after it."""
    sides = []
    for time, choose, at in (('"end" <=', 'MAX(R."end")', part.start), ("start >=", "MIN(R.start)", part.end)):
        if at is not None:
            calls = f"SELECT * FROM {tables.name('rocpd_region')} WHERE {VALID_TIMES} AND {time} {at}"
            events = f"{tables.name('rocpd_event')} E ON E.id = R.event_id"
            rows = f"SELECT R.id AS id, {choose} FROM ({calls}) R JOIN {events} GROUP BY R.tid, E.category_id"
            sides.append(f"id IN (SELECT id FROM ({rows}))")
    return " OR ".join(sides) or "0"
