"""Agents that several processes use: which of them has an agent when, so that the time of a job counts once.

Processes share an agent where both ran work on the one with the same PCI address, on one machine since one boot, in one
run, on clocks that compare. Where a profiler writes no such address, each process has agents of its own.

By rank, agent and stream each process has all of its time of the agent. Of a job, or of hosts, runs, steps and markers,
the time of the agent is that of their union: who computes has it, then who communicates, copies, idles; of several the
rank with the lowest number. Which process has it is a fact of the whole trace, whatever the selection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import Ints, by_key
from rocpd.facts.agent_time import lanes_in_time
from rocpd.facts.operations import OperationNames, kinds_of, read_ops
from rocpd.facts.rank import LANES, By, Options, RankReading
from rocpd.facts.timeline import ALWAYS, KINDS, NOTHING, PARTS, Pieces, Union, gaps_between, outside, union, unite
from rocpd.facts.units import HadByOthers, RankTime, Taken, Times, active_times, agents_of_ranks, times_that_count
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import OPERATIONS_BYTES, RankReader
from rocpd.schema.rules.kernel_categories import load

_ADDRESS = """SELECT json_extract(extdata, '$.domain') AS domain, json_extract(extdata, '$.location_id') AS location
FROM rocpd_info_agent WHERE id = ? AND json_valid(extdata) AND location IS NOT NULL"""

_FOREVER = np.iinfo(np.int64).max


def times_of_job(session: Federation, options: Options) -> Times:
    """Return which time of each rank counts, without what other processes have of its agents.

    Args:
        session: the job, and the window.
        options: what divides it, markers that are steps, and whether everything counts.
    """
    times = times_that_count(session, options)
    if options.by in (By.RANK, *LANES) or len(session.ranks) < 2:
        return times
    taken = taken_from(session, options)
    return {rank: replace(time, taken=taken[rank]) if rank in taken else time for rank, time in times.items()}


def taken_from(session: Federation, options: Options) -> Mapping[int, Taken]:
    """Return rank -> what other processes of the job have of its agents; without those that share none."""
    return session.job.once(("taken", options.categories), lambda: _taken(session, options))


def _taken(session: Federation, options: Options) -> dict[int, Taken]:
    shared = list(_shared(session, options))
    agents: defaultdict[int, set[int]] = defaultdict(set)
    for users in shared:
        for rank, agent in users.items():
            agents[rank].add(agent)
    if not agents:
        return {}
    active: dict[int, RankTime] = {}
    for ranks in session.job.by_run:
        active |= active_times(session, [rank.number for rank in ranks], {})
    some = session.job.of_ranks(tuple(rank for rank in session.ranks if rank.number in agents), keep_alignment=False)
    work = partial(_parts, agents=agents, active=active, options=Options(categories=options.categories))
    parts = {rank.number: of_rank for rank, of_rank in some.map_ranks(work, brief_bytes=OPERATIONS_BYTES)}
    taken: dict[int, Taken] = {}
    for users in shared:
        names = ", ".join(map(str, users))
        session.note(f"ranks {names} use one GPU: its time counts once, and by rank or agent for each of them")
        for rank, (start, end) in divided_among({rank: parts[rank][agent] for rank, agent in users.items()}).items():
            taken[rank] = (*taken.get(rank, ()), HadByOthers.of(users[rank], start, end))
    return taken


def _shared(session: Federation, options: Options) -> Iterator[dict[int, int]]:
    """Yield rank -> its id of each agent that several use."""
    alike: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
    used = agents_of_ranks(session, options)
    for rank in session.ranks:
        for agent, index in used[rank.number]:
            alike[rank.run, rank.boot or rank.hostname, index].append((rank.number, agent))
    several = [candidates for candidates in alike.values() if len(candidates) > 1]  # few jobs: spans take a while
    domains = {rank: at for at, each in enumerate(session.clock_domains) for rank in each.ranks} if several else {}
    for near in several:
        for candidates in by_key((domains.get(number), (number, agent)) for number, agent in near).values():
            users: defaultdict[object, dict[int, int]] = defaultdict(dict)
            for number, agent in candidates if len(candidates) > 1 else ():  # addresses take as long as all else
                for address in session.reader(number).rows(_ADDRESS, (agent,)):
                    users[address][number] = agent
            yield from (ranks for ranks in users.values() if len(ranks) > 1)


def _parts(
    reader: RankReader, agents: Mapping[int, set[int]], active: Times, options: Options
) -> dict[int, tuple[Ints, Ints, Ints]]:
    """Return agent -> start, end [ns] and number in `PARTS` of what it does, of those that are shared."""
    reading, names = RankReading.of(reader, {}, options), OperationNames()
    ops = read_ops(reading, names)
    kinds = kinds_of(ops, load(options.categories), names)
    every = dict.fromkeys(agents[reader.rank.number], (*NOTHING, NOTHING[0]))
    for _, agent, rows, (low, high) in lanes_in_time(reading, active.get(reader.rank.number), ops):
        if agent in every:
            kind, start, end = kinds[rows], *(np.clip(side[rows], low, high) for side in (ops.start, ops.end))
            unions = [union(start[kind == number], end[kind == number]) for number in range(len(KINDS))]
            unions.append((np.array([low]), np.array([high])))
            start, end = (np.concatenate(side) for side in zip(*unions, strict=True))
            every[agent] = start, end, np.repeat(np.arange(len(PARTS)), [len(side) for side, _ in unions])
    return every


def divided_among(parts: Mapping[int, tuple[Ints, Ints, Ints]]) -> dict[int, Union]:
    """Return rank -> when others have an agent.

    Args:
        parts: rank -> start, end [ns] and number in `PARTS` of its time of the agent: of several at once the first has
            it, and idle is the rest of its time.

    >>> computes, idles = (np.array([0]), np.array([5]), np.array([0])), (np.array([0]), np.array([9]), np.array([3]))
    >>> had = divided_among({0: idles, 1: computes})
    >>> [column.tolist() for column in had[0]], had[1][0][1].item(), had[1][1][0].item()
    ([[0], [5]], 5, 0)
    """
    kept: dict[int, list[Union]] = {rank: [] for rank in parts}
    before = NOTHING
    for part in range(len(PARTS)):
        for rank in sorted(parts):
            start, end, of = parts[rank]
            own = union(start[of == part], end[of == part])
            mine = outside(Pieces.each(*own), before)
            kept[rank].append((mine.start, mine.end))
            before = unite(before, own)
    kept[min(parts)].append(gaps_between(before, ALWAYS, _FOREVER))
    return {
        rank: gaps_between(union(*(np.concatenate(side) for side in zip(*own, strict=True))), ALWAYS, _FOREVER)
        for rank, own in kept.items()
    }
