"""Which exchanges a finished simulated file records: per group the calls of RCCL and the kernels that they launched."""

from __future__ import annotations

from typing import Any

from rocpd.base.sqlite import apsw
from rocpd.schema.quote import quote_name
from rocpd.simulator.incidents import Exchanges, GroupKey, MadeExchange
from rocpd.simulator.layout import GroupKind, Layout

_WIDTHS = {"ncclFloat32": 4, "ncclFloat64": 8}
_WAITS = ("hipStreamSynchronize", "hipDeviceSynchronize")


def exchanges_of(connection: apsw.Connection, suffix: str, layout: Layout, rank: int) -> Exchanges:
    """Return the exchanges of a rank by group, in the order of its calls."""
    kernels = _kernels(connection, suffix)
    kinds: dict[str, GroupKind] = {}
    made = iter(layout.communicators())
    found: dict[GroupKey, list[MadeExchange]] = {}
    group: list[tuple[str, dict[str, str], int]] = []
    for name, start, stack, arguments in _calls(connection, suffix):
        if name == "ncclCommInitRank":
            kinds[arguments["comm"]] = next(made)
        elif "comm" in arguments and stack in kernels:
            _add(found, kinds, layout, rank, [(name, arguments, start)], kernels[stack])
        elif "comm" in arguments and name != "ncclCommDestroy":
            group.append((name, arguments, start))
        elif name == "ncclGroupEnd":
            if group and stack in kernels:
                _add(found, kinds, layout, rank, group, kernels[stack])
            group = []
    return found


def _add(
    found: dict[GroupKey, list[MadeExchange]],
    kinds: dict[str, GroupKind],
    layout: Layout,
    rank: int,
    calls: list[tuple[str, dict[str, str], int]],
    kernel: tuple[int, int],
) -> None:
    """Add an exchange: a call, or a group of calls, which is one transfer or an all-to-all."""
    name, arguments, called = calls[0]
    comm = arguments["comm"]
    if comm not in kinds:  # calls without those that make communicators: in the order of their first use
        kinds[comm] = layout.communicators()[len(kinds)]
    kind = kinds[comm]
    members = layout.group_of(rank, kind).members
    key = GroupKey(f"{kind.value} {_ranks(members)}", members)
    if len(calls) == 1 and "peer" in arguments:
        peer = members[int(arguments["peer"])]
        pair = (rank, peer) if name == "ncclSend" else (peer, rank)
        key = GroupKey(f"{kind.value} {pair[0]}->{pair[1]}", pair, True)
    elif len(calls) > 1:
        name = "ncclAllToAll"
    count = int(arguments.get("count", arguments.get("sendcount", "0")))
    size = count * _WIDTHS.get(arguments.get("datatype", ""), 2)
    found.setdefault(key, []).append(MadeExchange(name, size, called, *kernel))


def _ranks(members: tuple[int, ...]) -> str:
    """Return ranks in few words: `0-7`, or `0,2,4`.

    >>> _ranks((0, 1, 2)), _ranks((1, 3)), _ranks((0, 4, 8, 12, 16))
    ('0-2', '1,3', '0,4…16')
    """
    if len(members) > 2 and members == tuple(range(members[0], members[-1] + 1)):
        return f"{members[0]}-{members[-1]}"
    return ",".join(map(str, members[:4])) if len(members) < 5 else f"{members[0]},{members[1]}…{members[-1]}"


def _calls(connection: apsw.Connection, suffix: str) -> list[tuple[str, int, int, dict[str, str]]]:
    """Return name, start, stack id and arguments of the calls of RCCL, in their order."""
    region, event, string, arg = (quote_name(f"rocpd_{base}{suffix}") for base in ("region", "event", "string", "arg"))
    text = (
        f"SELECT s.string, r.start, e.stack_id, e.id FROM {region} r JOIN {event} e ON e.id = r.event_id"  # noqa: S608
        f" JOIN {string} s ON s.id = r.name_id WHERE s.string LIKE 'nccl%' ORDER BY r.start, r.id"
    )
    arguments = f"SELECT name, value FROM {arg} WHERE event_id = ?"  # noqa: S608
    rows: list[tuple[Any, ...]] = connection.execute(text).fetchall()
    return [(name, start, stack, dict(connection.execute(arguments, (number,)))) for name, start, stack, number in rows]


def _kernels(connection: apsw.Connection, suffix: str) -> dict[int, tuple[int, int]]:
    """Return start and end of the kernel that a call of RCCL launched, by the call's stack id."""
    region, event, dispatch = (quote_name(f"rocpd_{base}{suffix}") for base in ("region", "event", "kernel_dispatch"))
    text = (
        f'SELECT c.parent_stack_id, d.start, d."end" FROM {dispatch} d JOIN {event} e ON e.id = d.event_id'  # noqa: S608
        f" JOIN (SELECT e.stack_id, e.parent_stack_id FROM {region} r JOIN {event} e ON e.id = r.event_id"
        " WHERE e.parent_stack_id > 0) c ON c.stack_id = e.stack_id"
    )
    rows: list[tuple[Any, ...]] = connection.execute(text).fetchall()
    return {stack: (start, end) for stack, start, end in rows}


def waits_of(connection: apsw.Connection, suffix: str) -> list[int]:
    """Return when a rank begins to wait for its GPU [ns], in order."""
    region, string = (quote_name(f"rocpd_{base}{suffix}") for base in ("region", "string"))
    text = (
        f"SELECT r.start FROM {region} r JOIN {string} s ON s.id = r.name_id"  # noqa: S608
        f" WHERE s.string IN ({', '.join('?' * len(_WAITS))}) ORDER BY r.start"
    )
    return [int(start) for (start,) in connection.execute(text, _WAITS)]
