"""Writes a simulated job in real time: each row at its time, as the recorder writes it.

The job is simulated as always, into a temporary folder, and played from there: a transaction per rank at least every
half a second, and the state file beside the database. One loop writes all ranks.

An incident stops the job: the stops of ranks, and of those that wait for them, follow by arithmetic from the exchanges
of each rank. A rank whose partner does not come stops at that exchange, and so do the ranks that wait for it, until
nothing changes.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import Progress, UsageError, by_key, frozen
from rocpd.base.evidence import remember
from rocpd.base.identity import blake2b
from rocpd.base.output import as_output_error, complete_or_nothing
from rocpd.base.sqlite import apsw
from rocpd.schema.live_state import CROWDED, FAILED, GROUPS, StateWriter, state_file
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.versions import suffix_of
from rocpd.simulator.job_plan import JobPlan, RankPlan
from rocpd.simulator.layout import ExchangeRequest, Layout
from rocpd.simulator.options import JobOptions, Plant, Rccl
from rocpd.simulator.script import Exchange, elements_of
from rocpd.simulator.stamp import end_of, identity_of

NEVER = 2**62
"""A time that is never reached [ns]."""


class Incident(StrEnum):
    """Incidents of a running job."""

    STALL = "stall"
    KILL = "kill"
    MISMATCH = "mismatch"
    DISK_FULL = "disk-full"


@frozen
class Happening:
    """An incident on a rank, in a step."""

    incident: Incident
    rank: int
    step: int


@frozen
class GroupKey:
    """The partners of exchanges: the ranks of a communicator, or of one direction between two of them; in order.

    Args:
        name: for people.
        members: ranks.
        is_pair: whether the first rank sends to the second.
    """

    name: str
    members: tuple[int, ...]
    is_pair: bool = False


@frozen
class MadeExchange:
    """One exchange of a rank: times of its call and of its kernel [ns of the rank's clock]."""

    name: str
    bytes: int
    called: int
    started: int
    ended: int


@frozen
class Halt:
    """The times at which host and GPU of a rank stop, and its rows end [ns of its clock].

    Args:
        host: later ends of calls do not happen.
        device: later ends of work do not happen.
        rows: later rows are not written.
        dies: whether its process is gone from then on.
        instead: the exchange that it called out of order, with its group.
    """

    host: int = NEVER
    device: int = NEVER
    rows: int = NEVER
    dies: bool = False
    instead: tuple[GroupKey, MadeExchange] | None = None


Exchanges = Mapping[GroupKey, Sequence[MadeExchange]]
"""The exchanges of a rank, by group, in the order of its calls."""


def parse_incident(text: str, ranks: int, steps: int, seed: int) -> Happening | None:
    """Return the incident, step and rank for a text such as `stall=5`; the rank follows from the seed; `none`: None.

    Raises:
        UsageError: the incident is unknown, or the job does not have the step.
    """
    name, _, step = text.partition("=")
    if name == "none":
        return None
    if name not in tuple(Incident):
        raise UsageError(f"incident {name}: unknown", f"none, or one of {', '.join(Incident)}")
    if step and not (step.isdecimal() and int(step) < steps):
        raise UsageError(f"incident {text}: not a step", f"a number below {steps}")
    return Happening(Incident(name), (seed * 7 + 3) % ranks, int(step) if step else steps // 2)


def spread(halts: dict[int, Halt], exchanges: Mapping[int, Exchanges], waits: Mapping[int, Sequence[int]]) -> None:
    """Let all ranks halt that wait for a halted rank.

    Args:
        halts: halts of every rank; changed.
        exchanges: exchanges of every rank.
        waits: times at which each rank begins to wait for its GPU [ns], in order.
    """
    keys = {key for of_rank in exchanges.values() for key in of_rank}
    changed = True
    while changed:
        changed = False
        for key in keys:
            number = min(  # of the first exchange that some member does not reach
                next((n for n, made in enumerate(exchanges[rank][key]) if not _comes(made, halts[rank])), NEVER)
                for rank in key.members
            )
            for rank in key.members:
                calls = exchanges[rank][key]
                if number < len(calls) and _comes(calls[number], halts[rank]):
                    halt = _waiting(halts[rank], calls[number], waits[rank])
                    changed |= halt != halts[rank]
                    halts[rank] = halt


def _comes(operation: MadeExchange, halt: Halt) -> bool:
    return operation.called <= halt.host and operation.started <= halt.device


def _waiting(halt: Halt, operation: MadeExchange, waits: Sequence[int]) -> Halt:
    """Return the halt of a rank that waits in an exchange: its GPU there, its host at its next wait for the GPU."""
    device = min(halt.device, operation.started)
    begins = next((start for start in waits if start >= operation.called), NEVER)
    host = min(halt.host, max(begins + 1, operation.called + 1))
    return replace(halt, host=host, device=device)


TICK = 0.25
"""Time between two commits of a rank [s]."""

_PATIENCE_MS = 10_000
_DEVICE = ("rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_graph_launch")
_HOST = ("rocpd_region", "rocpd_memory_allocate")
_OF_EVENTS = (*_HOST, *_DEVICE, "rocpd_sample", "rocpd_arg", "rocpd_pmc_event")
_LONGEST_NS = 60_000_000_000  # no call of a simulated job takes longer
_OPEN_CALL = """SELECT S.string, R.start FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
JOIN rocpd_string S ON S.id = R.name_id JOIN rocpd_string C ON C.id = E.category_id
WHERE R.tid = ? AND R.start <= ? AND R.start > ? AND R."end" > ? AND C.string IN ('HIP_RUNTIME_API', 'RCCL_API')
ORDER BY R.start LIMIT 1"""


def play(
    job: JobPlan,
    paths: tuple[Path, ...],
    write: Callable[[JobOptions], tuple[Path, ...]],
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write the files of a simulated job in real time; return when it has ended, or has hung for `hold` seconds.

    Args:
        job: the job; its option `live` is the speed relative to real time.
        paths: the files to write.
        write: simulates a job at once.
        progress: called with seconds played and seconds in all.

    Raises:
        UsageError: the options contradict each other.
        OutputError: a file cannot be written.
    """
    options = job.options
    if options.faults or options.idle_ranks or options.kineto or len(paths) < len(job.ranks):
        raise UsageError("live: not with faults, idle or lost ranks, or kineto", "leave them out")
    happening = parse_incident(options.incident, options.ranks, job.steps, options.seed)
    if happening and happening.incident is not Incident.DISK_FULL and options.rccl == Rccl.NONE:
        raise UsageError(f"incident {happening.incident}: needs recorded calls of RCCL", "leave --rccl none out")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rocpd-live-") as folder, ExitStack() as stack:
        parts = zip(job.ranks, write(replace(options, out=Path(folder), live=None)), paths, strict=True)
        players = [stack.enter_context(Player(job, *part)) for part in parts]
        _halt(job, players, happening)
        _run(job, players, progress)
    return paths


def _run(job: JobPlan, players: list[Player], progress: Progress | None) -> None:
    """Play until all ranks have ended, or hang for the time asked for."""
    speed, began = float(job.options.live or 1.0), time.monotonic()
    first = min(rank.start_ns for rank in job.ranks)
    length = max(end_of(job, rank) for rank in job.ranks) - first + 100_000_000
    hangs = any(player.hangs for player in players)
    lasts = length / 1e9 / speed + (job.options.hold if hangs else 0.0)
    while True:
        passed = time.monotonic() - began
        played = int(passed * speed * 1e9)
        for player in players:
            player.play(first + (played if hangs else min(played, length)))
        if progress is not None:
            progress(min(int(passed), int(lasts)), int(lasts) + 1)
        if passed >= lasts:
            break
        time.sleep(max(0.0, TICK - (time.monotonic() - began - passed)))
    for player in players:
        player.end(hangs)


def _halt(job: JobPlan, players: list[Player], happening: Happening | None) -> None:
    """Decide the halt of each rank."""
    halts = {player.rank.number: Halt() for player in players}
    if happening is not None:
        victim = players[happening.rank]
        halts[happening.rank] = victim.struck(happening, int(job.timing.anchors[happening.step + 1, happening.rank, 0]))
        exchanges = {player.rank.number: player.exchanges for player in players}
        spread(halts, exchanges, {player.rank.number: waits_of(player.source) for player in players})
    for player in players:
        player.halt = halts[player.rank.number]


class Player:
    """Plays one rank from its finished file `source` into the new file `path`."""

    def __init__(self, job: JobPlan, rank: RankPlan, source: Path, path: Path) -> None:
        self.rank, self.path, self.halt = rank, path, Halt()
        self._job, self._clock = job, job.nodes[rank.node]
        self.suffix = suffix_of(rank.guid)
        self.source = apsw.Connection(str(source))
        self._file, self._blank = source, source.with_suffix(".blank")
        shutil.copyfile(source, self._blank)  # before time runs: 64 ranks take seconds
        _empty(self._blank, self.suffix)
        _put_in_order(self.source, self.suffix)
        self.exchanges: Exchanges = exchanges_of(job, rank)
        self._open: tuple[apsw.Connection, StateWriter] | None = None
        self._statements: tuple[str, ...] = ()
        self._played = 0
        self._is_dead = False

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *error: object) -> None:
        self.source.close()
        if self._open:
            connection, state = self._open
            connection.close()
            state.close(remove=False)

    @property
    def hangs(self) -> bool:
        """Whether the rank halts at some time."""
        return self.halt.host < NEVER

    def struck(self, happening: Happening, step_start: int) -> Halt:
        """Return the halt of the rank that an incident strikes, in the step that starts at a true time [ns]."""
        start = int(self._clock.local(np.array([step_start]))[0])
        if happening.incident is Incident.MISMATCH:
            return _mismatch(self.exchanges, start)
        text = (
            'SELECT (start + "end") / 2 FROM regions'
            " WHERE start > ? AND category = 'HIP_RUNTIME_API' ORDER BY start LIMIT 1"
        )
        at = next(self.source.execute(text, (start,)))[0]
        if happening.incident is Incident.DISK_FULL:
            return Halt(rows=at)
        return Halt(at, rows=at, dies=True) if happening.incident is Incident.KILL else Halt(at)

    def play(self, true: int) -> None:
        """Write the rows that have ended by a true time [ns], and the state at that time."""
        if true < self.rank.start_ns:
            return
        now = int(self._clock.local(np.array([true]))[0])
        connection, state = self._open = self._open or self._begin(now)
        self._write_rows(connection, min(now, self.halt.rows))
        if self.halt.dies and now > self.halt.host:
            now = min(now, self.halt.host)
            if self._is_dead:
                return
            self._is_dead = True
        self._write_state(state, now)

    def _begin(self, now: int) -> tuple[apsw.Connection, StateWriter]:
        """Create the file with everything but events, and the state file."""
        with as_output_error(self.path), complete_or_nothing(self.path, self._job.options.force) as temporary:
            shutil.copyfile(self._blank, temporary)
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(_PATIENCE_MS)  # readers of the running job delay it
        connection.pragma("journal_mode", self._job.options.live_journal)
        connection.pragma("synchronous", 0)
        connection.execute(f"ATTACH {quote_text(str(self._file))} AS done")
        self._statements = tuple(_statements(connection, self.suffix))
        who: dict[str, Any] = {
            "host": self._clock.hostname,
            "guid": self.rank.guid,
            "pid": self.rank.pid,
            "rank": self.rank.number,
            "speed": self._job.options.live,
        }
        crowded = CROWDED if len(self.exchanges) > GROUPS else 0
        return connection, StateWriter(state_file(self.path), flags=crowded, boot="simulated", **who, **_pair(now))

    def _write_rows(self, connection: apsw.Connection, until: int) -> None:
        last = next(connection.execute("SELECT MAX(id) FROM done.played WHERE time <= ?", (until,)))[0] or 0
        if last > self._played:
            values = (self._played, last, self.halt.host, self.halt.device)
            with connection:
                for statement in self._statements:
                    connection.execute(statement, values)
            self._played = last

    def _write_state(self, state: StateWriter, now: int) -> None:
        host = min(now, self.halt.host)
        for slot, (key, operations) in enumerate(list(self.exchanges.items())[:GROUPS]):
            state.group(slot, **_group(key, self.rank.number, operations, host, min(now, self.halt.device)))
        for slot, (tid, call, since) in enumerate(self._open_calls(host)):
            state.thread(slot, tid=tid, call=call, since=since, group=0)
        if self.halt.instead is not None and now > self.halt.host:
            self._call_instead(state, *self.halt.instead)
        failed = FAILED if now > self.halt.rows else 0
        state.beat(**_pair(now), flags=failed)

    def _call_instead(self, state: StateWriter, key: GroupKey, operation: MadeExchange) -> None:
        slot = list(self.exchanges).index(key)
        entered = sum(exchange.called <= self.halt.host for exchange in self.exchanges[key]) + 1
        fields = {"entered": entered, "operation": operation.name, "bytes": operation.bytes}
        state.group(slot, entered_at=operation.called, **fields)
        main = identity_of(self.rank).tids[0]
        state.thread(0, tid=main, call=operation.name, since=operation.called, group=group_id(key))

    def _open_calls(self, at: int) -> Iterator[tuple[int, str, int]]:
        """Yield for each thread its outermost open call of a runtime, or "" and 0."""
        threads: list[Any] = self.source.execute("SELECT id FROM rocpd_info_thread ORDER BY id").fetchall()
        for (tid,) in threads:
            call: Any = next(self.source.execute(_OPEN_CALL, (tid, at, at - _LONGEST_NS, at)), ("", 0))
            yield int(tid), *call

    def end(self, hangs: bool) -> None:
        """End the process, unless the job hangs: then its files stay as if everything was killed."""
        if self._open is None:
            return
        connection, state = self._open
        if not hangs and self.halt.rows == NEVER:
            process = quote_name("rocpd_info_process" + self.suffix)
            ends = 'SELECT fini, "end" FROM done.rocpd_info_process'
            connection.execute(f'UPDATE {process} SET (fini, "end") = ({ends})')  # noqa: S608
        connection.close()
        state.close(remove=not hangs and self.halt.rows == NEVER)
        self._open = None
        for path in (self.path, state_file(self.path)):
            remember(path)


def _pair(now: int) -> dict[str, int]:
    return {"clock": now, "wall": time.time_ns()}


def _group(key: GroupKey, rank: int, operations: Any, host: int, device: int) -> dict[str, Any]:
    """Return the slot of a group at a time."""
    entered = [exchange for exchange in operations if exchange.called <= host]
    left = [exchange for exchange in entered if exchange.ended <= device]
    slot: dict[str, Any] = {"size": len(key.members), "member": key.members.index(rank), "name": key.name}
    slot |= {"id": group_id(key), "entered": len(entered), "left": len(left)}
    if entered:
        slot |= {"entered_at": entered[-1].called, "operation": entered[-1].name, "bytes": entered[-1].bytes}
    if left:
        slot |= {"left_at": left[-1].ended, "left_operation": left[-1].name}
    return slot


def group_id(key: GroupKey) -> int:
    """Return a number for a group that is the same in all of its members."""
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), "little")


def _mismatch(exchanges: Exchanges, start: int) -> Halt:
    """Return the halt of a rank that calls another exchange than its partners, of this group or of another one."""
    groups = [key for key in exchanges if not key.is_pair and len(key.members) > 1]
    due = min(
        ((exchange.called, key, exchange) for key in groups for exchange in exchanges[key] if exchange.called > start),
        key=lambda candidate: candidate[0],
    )
    called, key, exchange = due
    others = [other for other in groups if other != key and len(set(other.members) & set(key.members)) > 1]
    wrong = replace(exchange, called=called - 1)
    if not others:
        wrong = replace(wrong, name="ncclBroadcast" if exchange.name != "ncclBroadcast" else "ncclAllGather")
    return Halt(called - 1, called - 1, instead=(others[0] if others else key, wrong))


def _put_in_order(connection: apsw.Connection, suffix: str) -> None:
    """Number the events of a finished file in the order of their ends: table `played`."""
    here = _tables(connection, suffix)
    parts = [f'SELECT event_id AS event, "end" AS time, 0 AS device FROM {base}' for base in _HOST]  # noqa: S608
    parts += [f'SELECT event_id, "end", 1 FROM {base}' for base in _DEVICE if base in here]  # noqa: S608
    parts.append("SELECT event_id, timestamp, 0 FROM rocpd_sample")
    indexes = {f"{base}_played": (base, "event_id") for base in _OF_EVENTS if base in here}
    with connection:
        connection.execute("CREATE TABLE played (id INTEGER PRIMARY KEY, event, time, device, launched)")
        connection.execute("CREATE TEMP TABLE calls AS SELECT stack_id AS stack, start FROM regions")
        connection.execute("CREATE INDEX temp.calls_stack ON calls (stack)")
        connection.execute(
            "INSERT INTO played (event, time, device, launched)"  # noqa: S608
            " SELECT p.event, p.time, p.device, IIF(p.device, COALESCE(c.start, p.time), p.time)"
            f" FROM ({' UNION ALL '.join(parts)}) p JOIN rocpd_event e ON e.id = p.event"
            " LEFT JOIN calls c ON p.device AND c.stack = e.stack_id ORDER BY p.time, p.event"
        )
        connection.execute("CREATE UNIQUE INDEX played_event ON played (event)")
        connection.execute("CREATE INDEX played_time ON played (time)")
        for index, (base, columns) in {**indexes, "played_regions": ("rocpd_region", "tid, start")}.items():
            connection.execute(f"CREATE INDEX {quote_name(index)} ON {quote_name(base + suffix)} ({columns})")


def _tables(connection: apsw.Connection, suffix: str) -> dict[str, list[str]]:
    """Return the columns of the tables of a rank, by their base names."""
    select = "SELECT T.name, C.name FROM main.sqlite_master T JOIN pragma_table_info(T.name) C WHERE T.type = 'table'"
    rows: Any = connection.execute(select)
    return {name.removesuffix(suffix): columns for name, columns in by_key(rows).items() if name.endswith(suffix)}


def _empty(path: Path, suffix: str) -> None:
    """Remove the events of a copy, and the end of its process."""
    with closing(apsw.Connection(str(path))) as connection:
        with connection:
            for base in _tables(connection, suffix):
                if base in (*_OF_EVENTS, "rocpd_event"):
                    connection.execute(f"DELETE FROM {quote_name(base + suffix)}")  # noqa: S608
                    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (base + suffix,))
            connection.execute(f'UPDATE {quote_name("rocpd_info_process" + suffix)} SET fini = NULL, "end" = NULL')  # noqa: S608
        connection.execute("VACUUM")


def _statements(connection: apsw.Connection, suffix: str) -> Iterator[str]:
    """Yield the statements that play a range of events; parameters: its ends, then the last times of host and GPU."""
    due = "p.id > ?1 AND p.id <= ?2 AND p.launched <= ?3 AND (p.device = 0 OR p.time <= ?4)"
    for base, columns in _tables(connection, suffix).items():
        if base not in (*_OF_EVENTS, "rocpd_event"):
            continue
        key = "id" if base == "rocpd_event" else "event_id"
        kept = [quote_name(c) for c in columns if c not in ("id", "event_id", "guid")]
        table = quote_name(base + suffix)
        yield (
            f"INSERT INTO main.{table} ({key}, {', '.join(kept)})"  # noqa: S608
            f" SELECT p.id, {', '.join(f't.{c}' for c in kept)} FROM done.played p JOIN done.{table} t"
            f" ON t.{key} = p.event WHERE {due} ORDER BY p.id"
        )


def exchanges_of(job: JobPlan, rank: RankPlan) -> Exchanges:
    """Return the exchanges of a rank by group, in the order of its calls; empty if they are not recorded."""
    if job.options.rccl == Rccl.NONE or Plant.NO_HIP_TRACE in job.planting:
        return {}
    exchanges: list[tuple[ExchangeRequest, str]] = []
    times: list[tuple[int, int, int]] = []
    for template, anchors in job.life(rank.number):
        for number, op in enumerate(template.ops, 1):
            if isinstance(op, Exchange):
                call = template.regions[op.call]
                exchanges.append((op.request, call.name))
                times.append((anchors[call.start.anchor] + call.start.fixed, anchors[op.start], anchors[number]))
    local = job.nodes[rank.node].local(np.array(times, dtype=np.int64).reshape(-1, 3))
    by_group: dict[GroupKey, list[MadeExchange]] = {}
    for at in np.argsort(local[:, 0], kind="stable").tolist():
        request, name = exchanges[at]
        _, width, elements = elements_of(request)
        made = MadeExchange("ncclAllToAll" if request.members else name, width * elements, *local[at].tolist())
        by_group.setdefault(_group_key(job.layout, rank.number, request), []).append(made)
    return by_group


def _group_key(layout: Layout, rank: int, request: ExchangeRequest) -> GroupKey:
    members = layout.group_of(rank, request.group).members
    if not request.peer:
        return GroupKey(f"{request.group.value} {_ranks(members)}", members)
    peer = members[members.index(rank) + request.peer]
    pair = (peer, rank) if request.receives else (rank, peer)
    return GroupKey(f"{request.group.value} {pair[0]}->{pair[1]}", pair, True)


def _ranks(members: tuple[int, ...]) -> str:
    """Return ranks as short text: `0-7`, or `0,2,4`.

    >>> _ranks((0, 1, 2)), _ranks((1, 3)), _ranks((0, 4, 8, 12, 16))
    ('0-2', '1,3', '0,4…16')
    """
    if len(members) > 2 and members == tuple(range(members[0], members[-1] + 1)):
        return f"{members[0]}-{members[-1]}"
    return ",".join(map(str, members[:4])) if len(members) < 5 else f"{members[0]},{members[1]}…{members[-1]}"


def waits_of(connection: apsw.Connection) -> list[int]:
    """Return the times at which a rank begins to wait for its GPU [ns], in order."""
    text = "SELECT start FROM regions WHERE name IN ('hipStreamSynchronize', 'hipDeviceSynchronize') ORDER BY start"
    return [int(start) for (start,) in connection.execute(text)]
