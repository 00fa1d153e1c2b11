"""Reads the communication kernels of one rank: its channels, and the RCCL calls that launched each kernel.

The call that launched the kernel lies inside an RCCL call of the same thread, whose argument `comm` is the
communicator. Calls between ncclGroupStart and ncclGroupEnd launch at the end of the group: the communicator is known
when all of them name the same one. Never looks at two ranks.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Ints, by_key, frozen
from rocpd.base.identity import blake2b
from rocpd.facts.columns import Names, as_text, columns, find_rows, first_of, grouped, number, numbered, statement
from rocpd.facts.communication.collectives import Channel, CommunicationKernels, is_shared
from rocpd.facts.communication.rccl import (
    ARGUMENTS,
    GROUP_END,
    GROUP_START,
    RcclCall,
    SendRole,
    Transfer,
    is_collective,
    role_of,
    transfer_of,
    whole_number,
)
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import REGION_COLUMNS, calls_of
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.rules.kernel_names import names_of_kernels

_DISPATCHED = " WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)"  # libraries bring thousands of others
_COLUMNS = ("id", "name", "agent", "stream", "start", "end", "queue", "stack")
_FUNCTIONS = "SELECT id, string FROM rocpd_string WHERE string GLOB 'nccl*' OR string = 'record_param_comms'"
_NAMES = ", ".join(f"'{name}'" for name in ARGUMENTS)
_ARGS = f"""
SELECT event_id, group_concat(name || char(31) || COALESCE(value, ''), char(30)) FROM rocpd_arg
WHERE event_id IN (SELECT value FROM json_each(?)) AND name IN ({_NAMES}) GROUP BY event_id"""
_FUNCTION = re.compile("nccl[A-Z]")  # of RCCL; ranges of PyTorch have other names, and name it in an argument
_ORDER = """
SELECT id, dispatch_id FROM rocpd_kernel_dispatch WHERE id IN (SELECT value FROM json_each(?))"""
_LAST = "SELECT MAX(dispatch_id) FROM rocpd_kernel_dispatch"
_LOST_IN = 10  # one of so many kernels of a stream may have lost its call
_AROUND = 3  # kernels on each side identify the one between them


class Communication(NamedTuple):
    """A channel; for each kernel that counts, its queue, and its transfer as a number in `transfers`."""

    channel: Channel
    queues: Ints
    codes: Ints
    transfers: Sequence[Transfer | None]


_COMMUNICATION = Fact(
    "communication", 2, (Communication, Channel, CommunicationKernels, SendRole, Transfer), is_small=True
)


def communication(reader: RankReader) -> list[Communication]:
    """Return the channels of one rank; do not change them."""
    return reader.once(_COMMUNICATION.of(reader.rank.number), lambda: _communication(reader))


def _communication(reader: RankReader) -> list[Communication]:
    categories, names = load(None), Names()
    symbols = reader.rows(names_of_kernels() + _DISPATCHED)
    texts = {number: as_text(name) for number, name in symbols if isinstance(number, int)}
    wanted = {number: text for number, text in texts.items() if is_communication(categories.of(text))}
    counted, queues = _kernels(reader, wanted, names)
    if not len(counted):
        return []
    recorded = _kernels(reader.whole(), wanted, names)[0] if reader.selects("rocpd_kernel_dispatch") else counted
    recorded = recorded.take(np.lexsort((recorded.row, recorded.start)))
    launched = launches(reader.whole(), recorded.row)
    result = []
    for channel in channels(reader.whole(), names.texts, recorded, counted, launched):
        result.append(communication_of(channel, queues[find_rows(counted.row, channel.counted.row)[0]]))
    return result


def communication_of(channel: Channel, queues: Ints) -> Communication:
    """Return a channel with the transfers of its kernels that count; `queues`: their queues."""
    transfers = None if channel.role else transfer_of(channel.name, ()), *channel.transfers[1:]
    codes = channel.moves[channel.numbers] if len(channel.moves) else np.zeros(len(channel.numbers), np.int64)
    return Communication(channel, queues, codes, transfers)


def _kernels(reader: RankReader, wanted: Mapping[int, str | None], names: Names) -> tuple[CommunicationKernels, Ints]:
    """Return the dispatches of some kernels with valid times, and their queues."""
    *read, queue, _ = columns(reader, "rocpd_kernel_dispatch", statement("kernels"), _COLUMNS)
    every = CommunicationKernels(*read)
    rows = (np.isin(every.name, [*wanted]) & valid_times(every.start, every.end)).nonzero()[0]
    kernels = every.take(rows)
    return replace(kernels, name=names.codes(kernels.name, wanted.get)), queue[rows]


class LaunchedBy(NamedTuple):
    """The launch of a kernel, as far as it is recorded: the communicator, and the calls that the kernel carries out."""

    communicator: str | None = None
    calls: tuple[RcclCall, ...] = ()


@frozen
class RcclLaunches:
    """The launches of kernels by RCCL calls, as far as they were recorded.

    Args:
        kernels: ids of the dispatches, in order.
        at: launch of each dispatch, as an index into `different`.
        different: the different launches; the first stands for unknown ones.
        sizes: communicator -> number of its ranks.
        own: communicator -> number of the rank in it.
    """

    kernels: Ints
    at: Ints
    different: tuple[LaunchedBy, ...] = (LaunchedBy(),)
    sizes: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, int] = field(default_factory=dict)

    def of(self, rows: Ints) -> Ints:
        """Return the launch of each dispatch, as an index into `different`."""
        return self.at[np.searchsorted(self.kernels, rows)]

    @property
    def is_known(self) -> bool:
        """Whether the launch of some dispatches is known."""
        return len(self.different) > 1

    @property
    def with_communicator(self) -> int:
        """Number of dispatches with a known communicator."""
        return int(np.array([each.communicator is not None for each in self.different])[self.at].sum())

    def size(self, number: int) -> int | None:
        """Return the number of ranks of the communicator of a launch; None: unknown."""
        return self.sizes.get(self.different[number].communicator or "")


@dataclass
class _Thread:
    """The RCCL calls of one thread in order: start and end [ns], the call around each, and the calls it carries out.

    Args:
        launches: times at which calls of the thread launched kernels, in order [ns].
        opened: calls that run when the next one starts.
        groups: for each group around the next call, the calls that it will carry out.
    """

    launches: Sequence[int] = ()
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    around: list[int] = field(default_factory=list)
    calls: list[tuple[RcclCall, ...]] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    groups: list[list[RcclCall]] = field(default_factory=list)

    def add(self, start: int, end: int, calls: tuple[RcclCall, ...]) -> None:
        """Add the next call, given as all that it carries out; the end of a group carries out all calls in it."""
        (call,) = calls
        if call.name == GROUP_START:
            self.groups.append([])
            calls = ()
        elif call.name == GROUP_END:
            calls = self._ended(start, end)
        elif self.groups:
            self.groups[-1].append(call)
        while self.opened and self.ends[self.opened[-1]] < start:
            self.opened.pop()
        self.around.append(self.opened[-1] if self.opened else -1)
        self.opened.append(len(self.starts))
        self.starts.append(start)
        self.ends.append(end)
        self.calls.append(calls)

    def _ended(self, start: int, end: int) -> tuple[RcclCall, ...]:
        """Return the calls that the end of a group carries out; a nested group passes them to the outer one.

        Only the outermost end launches a kernel: groups around one that launches have lost their own end.
        """
        ended = self.groups.pop() if self.groups else []
        launched = bisect_left(self.launches, start)
        if launched < len(self.launches) and self.launches[launched] <= end:
            self.groups = []
        elif self.groups:
            self.groups[-1] += ended
        return tuple(ended)

    def at(self, time: int) -> Iterator[tuple[RcclCall, ...]]:
        """Yield the calls that each call running at a time [ns] carries out, the innermost first."""
        call = bisect_right(self.starts, time) - 1
        while call >= 0:
            if self.ends[call] >= time:
                yield self.calls[call]
            call = self.around[call]


def launches(reader: RankReader, kernels: Ints) -> RcclLaunches:
    """Return the launches of dispatches by RCCL calls of a rank; do not change the result.

    Args:
        reader: reads all rows of the rank.
        kernels: ids of the dispatches.
    """
    kernels = np.sort(kernels)
    asked = blake2b(kernels.tobytes(), digest_size=16).hexdigest()
    return reader.once(_LAUNCHES.of(asked), lambda: _launches(reader, kernels))


def with_communicator(reader: RankReader, kernels: Ints) -> int:
    """Return the number of dispatches with a known communicator; arguments as for `launches`."""
    return launches(reader.whole(), kernels).with_communicator


_LAUNCHES = Fact("launches", 1, (RcclLaunches, LaunchedBy, RcclCall), is_small=True)


def _launches(reader: RankReader, kernels: Ints) -> RcclLaunches:
    at = np.zeros(len(kernels), np.int64)
    regions = _calls(reader) if len(kernels) else []
    if not regions:
        return RcclLaunches(kernels, at)
    of_calls = _arguments(reader, [event for event, *_ in regions])
    launched, time, thread = _launching_calls(reader, kernels)
    calls = list(zip(thread.tolist(), time.tolist(), strict=True))
    threads = _threads(regions, of_calls, {thread: sorted(times) for thread, times in by_key(calls).items()})
    different, numbers = [LaunchedBy()], dict[tuple[object, ...], int]()
    known: dict[tuple[int, ...], int] = {}  # kernels of a loop are launched alike
    codes = []
    for of_thread, at_time in calls:
        running = list(threads[of_thread].at(at_time)) if of_thread in threads else []
        alike = tuple(map(id, running))
        if alike not in known:
            words = {call.communicator for call in running[0] if call.communicator} if running else set()
            by = LaunchedBy(words.pop() if len(words) == 1 else None, _carried_out(running))
            known[alike] = numbers.setdefault((by.communicator, *map(id, by.calls)), len(different))
            if known[alike] == len(different):
                different.append(by)
        codes.append(known[alike])
    at[np.searchsorted(kernels, launched)] = codes
    arguments = [*{id(each): each for each in reversed(of_calls.values())}.values()][::-1]  # the last call counts
    sizes, ranks = _made(arguments, ("nranks",)), _made(arguments, ("myrank", "rank"))
    return RcclLaunches(kernels, at, tuple(different), sizes, ranks)


_Call: TypeAlias = tuple[int, int, int, int, str | None]
"""A call to RCCL: event, thread, start, end [ns], name."""


def _calls(reader: RankReader) -> list[_Call]:
    """Return the calls to RCCL of a rank, in order."""
    names = {number: as_text(name) for number, name in reader.rows(_FUNCTIONS)}
    if not names:
        return []
    read = columns(reader, "rocpd_region", statement("regions"), REGION_COLUMNS)
    _, start, end, row, thread, name, _, event = read
    rows = (np.isin(name, [*names]) & (start != NULL) & (end != NULL)).nonzero()[0]
    rows = rows[np.lexsort((row[rows], start[rows]))]
    *times, name = (column[rows].tolist() for column in (event, thread, start, end, name))
    return list(zip(*times, map(names.get, name), strict=True))


def _arguments(reader: RankReader, events: Sequence[int]) -> dict[int, Mapping[str, str]]:
    """Return event -> arguments by name; equal ones are the same object, so that results for it are found again."""
    known: dict[object, dict[str, str]] = {}
    of_events: dict[int, Mapping[str, str]] = {}
    for event, pairs in reader.rows(_ARGS, (json.dumps(events),)):
        if pairs not in known:
            named = (pair.partition("\x1f") for pair in (as_text(pairs) or "").split("\x1e"))
            known[pairs] = {name: value for name, _, value in named}
        of_events[event] = known[pairs]
    return of_events


def _carried_out(running: Sequence[tuple[RcclCall, ...]]) -> tuple[RcclCall, ...]:
    """Return the calls that a kernel carries out: a collective may be made of a group of sends inside it."""
    outermost = next((calls for calls in reversed(running) if any(map(is_collective, calls))), ())
    return outermost or (running[0] if running else ())


def _launching_calls(reader: RankReader, kernels: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the dispatches whose launching call is recorded, the start of that call [ns], and its thread."""
    ids, stack = columns(reader, "rocpd_kernel_dispatch", statement("kernels"), ("id", "stack"))
    rows, is_known = find_rows(ids, kernels)
    regions, call, _ = calls_of(RankReading.of(reader, {}), np.where(is_known, stack[rows], NULL))
    has_call = (call >= 0).nonzero()[0]
    return kernels[has_call], regions.start[call[has_call]], regions.thread[call[has_call]]


def _threads(
    regions: Iterable[_Call], of_calls: Mapping[int, Mapping[str, str]], launched: Mapping[int, Sequence[int]]
) -> dict[int, _Thread]:
    """Return the RCCL calls of each thread; `launched`: times at which its calls launched kernels [ns]."""
    threads: dict[int, _Thread] = {}
    known: dict[tuple[str, int], tuple[RcclCall, ...]] = {}
    nothing: Mapping[str, str] = {}
    for event, thread, start, end, text in regions:
        arguments = of_calls.get(event, nothing)
        name = arguments.get("function") or text or ""
        if (calls := known.get((name, id(arguments)))) is None:
            calls = known[name, id(arguments)] = (RcclCall(name, arguments),) if _FUNCTION.match(name) else ()
        if calls:
            if thread not in threads:
                threads[thread] = _Thread(launched.get(thread, ()))
            threads[thread].add(start, end, calls)
    return threads


def _made(calls: Iterable[Mapping[str, str]], names: Sequence[str]) -> dict[str, int]:
    """Return communicator -> the argument of one of these names in the calls that created it."""
    numbers = {}
    for arguments in calls:
        communicator = arguments.get("newcomm") or arguments.get("comm")
        number = next((whole_number(arguments[name]) for name in names if name in arguments), None)
        if communicator and number is not None:
            numbers[communicator] = number
    return numbers


def channels(
    reader: RankReader,
    names: Sequence[str | None],
    recorded: CommunicationKernels,
    counted: CommunicationKernels,
    launched: RcclLaunches,
) -> list[Channel]:
    """Return the communication kernels of a rank by name, agent, communicator (or stream where none is named) and role.

    Args:
        reader: reads all rows of the rank.
        names: full names of kernels.
        recorded: all communication kernels of the rank, in order of start and id.
        counted: the kernels that count.
        launched: their launches by RCCL calls.
    """
    words = Names()
    at = launched.of(recorded.row)
    codes = _per_number(at, lambda number: words.code(launched.different[number].communicator))
    roles, role_codes = _roles(names, recorded.name, at, launched)
    codes, role_codes = _filled(codes, role_codes, recorded, words.code(None))
    streams = np.where(codes == words.code(None), recorded.stream, NULL)
    counted = counted.take(np.argsort(counted.row))
    order, last = ({}, 0) if launched.is_known else _order(reader, recorded.row)
    result = []
    for (name, agent, code, _, role), rows in grouped([recorded.name, recorded.agent, codes, streams, role_codes]):
        kernels = recorded.take(rows)
        nearest = np.minimum(np.searchsorted(counted.row, kernels.row), len(counted) - 1)
        numbers = (counted.row[nearest] == kernels.row).nonzero()[0]
        word = words.texts[code]
        result.append(
            Channel(
                names[name],
                reader.rank.number,
                agent,
                word if word and is_shared(word) else None,
                launched.sizes.get(word) if word else None,
                kernels.start,
                kernels.end,
                kernels.stream,
                numbers,
                counted.take(nearest[numbers]),
                roles[role],
                launched.own.get(word) if word else None,
                *_moves(names[name], at[rows], launched),
                order=np.array([order[row] for row in kernels.row.tolist()] + [last] if order else [], np.int64),
                rows=kernels.row,
            )
        )
    return result


def _filled(codes: Ints, roles: Ints, kernels: CommunicationKernels, unknown: int) -> tuple[Ints, Ints]:
    """Return communicators and roles of kernels, with the few unknown ones of a stream filled in from their neighbours.

    Nothing is known of a kernel whose call was lost. The kernels before and after it on the stream identify it, if
    elsewhere the same neighbours have only one kind of kernel between them: one on each side, else two, else three.
    """
    codes, roles = codes.copy(), roles.copy()
    for _, rows in grouped([kernels.agent, kernels.stream, kernels.name]):
        lost = (codes[rows] == unknown).nonzero()[0]
        if not len(lost) or len(lost) * _LOST_IN > len(rows):
            continue
        kinds = list(zip(codes[rows].tolist(), roles[rows].tolist(), strict=True))
        for width in range(1, _AROUND + 1):
            between = _between(kinds, width, unknown)
            for at in lost[codes[rows[lost]] == unknown].tolist():
                known = between.get(_around(kinds, at, width), set())
                if len(known) == 1:
                    codes[rows[at]], roles[rows[at]] = next(iter(known))
    return codes, roles


_Kind = tuple[int, int]


def _around(kinds: Sequence[_Kind], at: int, width: int) -> tuple[Sequence[_Kind], Sequence[_Kind]]:
    """Return `width` kinds before and after a place, fewer at the ends."""
    return tuple(kinds[max(0, at - width) : at]), tuple(kinds[at + 1 : at + 1 + width])


def _between(kinds: Sequence[_Kind], width: int, unknown: int) -> dict[object, set[_Kind]]:
    """Return neighbours, as `_around` returns them -> the known kinds between them."""
    between: dict[object, set[_Kind]] = {}
    for at, kind in enumerate(kinds):
        if kind[0] != unknown:
            between.setdefault(_around(kinds, at, width), set()).add(kind)
    return between


def _order(reader: RankReader, rows: Ints) -> tuple[dict[int, int], int]:
    """Return dispatch -> its number among all launches of the process, and the last number of all."""
    numbered = reader.rows(_ORDER, (json.dumps(rows.tolist()),))
    ((last,),) = reader.rows(_LAST)
    return {row: number(order) for row, order in numbered}, number(last)


def _moves(name: str | None, at: Ints, launched: RcclLaunches) -> tuple[Ints, tuple[Transfer | None, ...]]:
    """Return the transfer of each dispatch of a name, as an index into the different ones; `at`: launch of each."""
    if not launched.is_known:
        return np.zeros(0, np.int64), ()
    known: dict[Transfer | None, int] = {None: 0}

    def code(number: int) -> int:
        calls = launched.different[number].calls
        return known.setdefault(transfer_of(name, calls, launched.size(number)), len(known)) if calls else 0

    return _per_number(at, code), tuple(known)


def _roles(
    names: Sequence[str | None], name: Ints, at: Ints, launched: RcclLaunches
) -> tuple[list[SendRole | None], Ints]:
    """Return the different roles, None for collectives, and for each kernel the index of its role in that list."""
    known: dict[SendRole | None, int] = {None: 0}

    def code(both: int) -> int:
        of, number = divmod(both, len(launched.different))
        role = role_of(names[of], launched.different[number].calls, launched.size(number))
        return known.setdefault(role, len(known))

    codes = _per_number(name * len(launched.different) + at, code)
    return list(known), codes


def _per_number(numbers: Ints, function: Callable[[int], int]) -> Ints:
    """Return `function(number)` for each number; it is called once per different one, in order of first appearance."""
    at = numbered(numbers)
    first = first_of(at)
    order = np.argsort(first)
    values = np.empty(len(first), np.int64)
    values[order] = [function(number) for number in numbers[first[order]].tolist()]
    return values[at]
