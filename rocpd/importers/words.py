"""Words of profilers, in those of rocpd files: agents, categories of calls, directions of copies, threads, counters
and arguments.

GPUs that a driver counts from 0 become agents; texts that hold arguments or facts of PyTorch's operators are read.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from rocpd.base.texts import json_object
from rocpd.schema.trace.events import Arguments, CounterValues, Events, Samples
from rocpd.schema.trace.infos import AgentInfo, CounterInfo, Info, ThreadInfo, TrackInfo
from rocpd.schema.trace.writer import TableRows, TraceWriter

REGISTERS = {"vgpr_count": "arch_vgpr_count", "accum_vgpr_count": "accum_vgpr_count", "sgpr_count": "sgpr_count"}
"""Registers of a kernel as rocprofv3's CSV files call them -> as a kernel's row does."""

SIZES = tuple(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
"""Columns of the sizes of a launch."""

ONE_ROW = {f"{what}_size_{axis}": 1 for what in ("workgroup", "grid") for axis in "yz"}
"""Sizes of a launch whose source says no more than the product of three."""

HOST = AgentInfo(0, type="CPU", absolute_index=0, logical_index=0, type_index=0, name="CPU")
"""The agent at the other end of copies from and to a host."""

MEMORY_SET = "MEMORY_SET"
"""Category and name of operations that fill memory: they lie with the copies, without a source."""

_COPIES = {
    "H": ("HOST", True),
    "D": ("DEVICE", False),
    "A": ("DEVICE", False),  # CUDA arrays lie on the device
    "P": ("DEVICE", False),  # of a peer
}
_NOTHING: Mapping[str, object] = MappingProxyType({})
_API = (("hip", "HIP_RUNTIME_API"), ("hsa_", "HSA_CORE_API"), ("cuda", "CUDA_RUNTIME_API"), ("cu", "CUDA_DRIVER_API"))


def gpu(
    device: int,
    name: str | None = None,
    memory: int | None = None,
    facts: Mapping[str, object] = _NOTHING,
    vendor: str | None = None,
) -> AgentInfo:
    """Return the agent that is a GPU.

    Args:
        device: its number, from 0.
        name: product.
        memory: of its own [bytes].
        facts: what else is known, such as `cu_count`, by the names of rocprofv3 or else of the source; None: unknown.
        vendor: who made it; None: as its name says.
    """
    known = {key: value for key, value in facts.items() if value is not None}
    if memory is not None:
        known["mem_banks"] = [{"heap_type": 1, "size_in_bytes": memory}]
    vendor = vendor or next((word for word in ("AMD", "NVIDIA") if word.lower() in (name or "").lower()), None)
    number = device + 1  # the host comes first
    return AgentInfo(
        number,
        type="GPU",
        absolute_index=number,
        logical_index=number,
        type_index=device,
        name=name or f"GPU {device}",
        product_name=name,
        vendor_name=vendor,
        extdata=json.dumps(known),
    )


@functools.lru_cache(maxsize=4096)
def api_category(function: str) -> str:
    """Return the category of a call by the name of its function.

    >>> api_category("hipLaunchKernel"), api_category("cuLaunchKernelEx"), api_category("cudaFree")
    ('HIP_RUNTIME_API', 'CUDA_DRIVER_API', 'CUDA_RUNTIME_API')
    """
    return next((category for start, category in _API if function.startswith(start)), "RUNTIME_API")


@functools.lru_cache(maxsize=256)
def copy_direction(kind: str) -> tuple[str, bool | None, bool | None]:
    """Return the name of a copy and whether it comes from and goes to the host; None: unknown.

    Args:
        kind: what the source says, with `HtoD`, `Host-to-Device` or the like in it.

    >>> copy_direction("Memcpy HtoD (Pageable -> Device)"), copy_direction("Device-to-Host")
    (('MEMORY_COPY_HOST_TO_DEVICE', True, False), ('MEMORY_COPY_DEVICE_TO_HOST', False, True))
    >>> copy_direction("Memcpy")
    ('MEMORY_COPY', None, None)
    """
    if not (match := re.search(r"\b([HDAP])(?:\w*-)?to-?([HDAP])", kind)):
        return "MEMORY_COPY", None, None
    (source, from_host), (target, to_host) = (_COPIES[letter] for letter in match.groups())
    return f"MEMORY_COPY_{source}_TO_{target}", from_host, to_host


_ABOVE_THREADS = 1 << 22
"""Linux's largest thread id: where ids of what is no thread begin."""


class Registered(dict[Any, int]):
    """Ids of things by a key of the source, each registered when it is asked for first.

    Args:
        trace: the file.
        describe: returns what a key stands for.
    """

    def __init__(self, trace: TraceWriter, describe: Callable[[Any], Info]) -> None:
        self._trace, self._describe = trace, describe

    def __missing__(self, key: Any) -> int:
        chosen = self[key] = self._trace.register(self._describe(key))
        return chosen


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows, of which there is at least one, as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def write_rows(trace: TraceWriter, kind: type[Any], rows: Sequence[Mapping[str, Any]]) -> TableRows:
    """Write rows, of which there is at least one; the `event` of each has the columns of its event."""
    columns = as_columns(rows)
    return trace.write(kind(**columns | {"event": Events(**as_columns(columns["event"]))}))


def write_arguments(
    trace: TraceWriter, events: Sequence[int], arguments: Iterable[Sequence[Argument]], first: int = 0
) -> None:
    """Write the arguments of each of some events, with positions from `first` on."""
    of_events = list(arguments)
    if flat := list(itertools.chain.from_iterable(of_events)):
        kind, name, value = zip(*flat, strict=True)
        event = [event for event, its in zip(events, of_events, strict=True) for _ in its]
        position = [place for its in of_events for place in range(first, first + len(its))]
        trace.write(Arguments(event_id=event, position=position, type=kind, name=name, value=value))


def write_values(trace: TraceWriter, values: Sequence[tuple[int | None, int, float]]) -> None:
    """Write values of counters: event, counter and value of each."""
    if values:
        event, counter, value = zip(*values, strict=True)
        trace.write(CounterValues(event_id=event, pmc_id=counter, value=value))


def sizes_of(value: Callable[[str, str], Any]) -> dict[str, Any]:
    """Return the sizes of launches: `value("workgroup", "x")` and so on."""
    return {f"{what}_size_{axis}": value(what, axis) for what in ("workgroup", "grid") for axis in "xyz"}


def counter_of(agent: int | None, name: str, symbol: str | None = None) -> CounterInfo:
    """Return a counter of a GPU of which no more is known."""
    return CounterInfo(agent_id=agent, target_arch="GPU", name=name, symbol=symbol, value_type="ABS")


class ThreadIds(Registered):
    """Ids of threads by what the source calls them, and of lines that it draws beside them.

    A thread that is named by a text gets a number above those of threads, and so does a line of a GPU: `ids[device,
    stream, "annotations"]`.

    Args:
        trace: the file.
        names: thread -> its name, as far as it is known.
    """

    def __init__(self, trace: TraceWriter, names: Mapping[object, str]) -> None:
        super().__init__(trace, self._thread)
        self._names, self._others = names, 0

    def _thread(self, key: object) -> ThreadInfo:
        if isinstance(key, int) and not isinstance(key, bool):
            return ThreadInfo(key, name=self._names.get(key))
        self._others += 1
        name = "unknown thread" if key is None else str(key)
        name = "GPU {} stream {} {}".format(*key) if isinstance(key, tuple) else name
        return ThreadInfo(_ABOVE_THREADS + self._others, name=name)


class CounterTracks:
    """Collects values of counters over time and writes them, each counter on a track of its name."""

    def __init__(self, trace: TraceWriter) -> None:
        self._trace = trace
        self._known: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._rows: list[tuple[int, int, int, float]] = []

    def add(self, name: str, agent: int | None, unit: str, time: int, value: float) -> None:
        """Add a value [unit] at a time [ns]; `agent` None: of no agent."""
        if (known := self._known.get((name, agent))) is None:
            target = None if agent is None else "GPU" if agent else "CPU"
            info = CounterInfo(agent_id=agent, target_arch=target, name=name, units=unit, value_type="ABS")
            known = self._known[name, agent] = self._trace.register(info), self._trace.register(TrackInfo(name=name))
        self._rows.append((*known, time, value))

    def write(self) -> None:
        """Write what was added."""
        if not self._rows:
            return
        counter, track, time, value = zip(*self._rows, strict=True)
        samples = self._trace.write(Samples(track_id=track, timestamp=time, event=Events("COUNTER")))
        self._trace.write(CounterValues(event_id=samples.events, pmc_id=counter, value=value))
        self._rows.clear()


Argument: TypeAlias = tuple[str, str, str]
"""Type, name and value."""

_OPERATOR = re.compile(
    r"(?P<name>.*?)(?:, seq = (?P<seq>-?\d+))?(?:, op_id = (?P<op_id>\d+))?"
    r"(?:, sizes = (?P<sizes>.*?))?(?:, input_op_ids = (?P<input_op_ids>.*))?",
    re.DOTALL,
)
_NAMES = {"seq": "Sequence number", "sizes": "Input Dims"}
"""Facts of an operator, as PyTorch's own traces call them."""


def arguments_of(text: str) -> Sequence[Argument] | None:
    """Return the arguments in the text of a call; None: it holds no arguments.

    >>> arguments_of("graphExec = 0x10 | stream = 0x0")
    [('pointer', 'graphExec', '0x10'), ('pointer', 'stream', '0x0')]
    >>> arguments_of('{"count": 3}'), arguments_of("MIOpenDriver conv")
    ([('int', 'count', '3')], None)
    """
    if text.startswith("{"):
        if (content := json_object(text)) is None:
            return None
        values = ((name, v if isinstance(v, str) else json.dumps(v)) for name, v in content.items())
        return [(_kind(value), name, value) for name, value in values]
    pairs = [part.partition("=") for part in text.split("|")]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        return None
    return [(_kind(value.strip()), name.strip(), value.strip()) for name, _, value in pairs]


def _kind(value: str) -> str:
    if value.startswith("0x"):
        return "pointer"
    return "int" if value.removeprefix("-").isdecimal() else ""


def operator_in(text: str) -> tuple[str, Sequence[Argument]] | None:
    """Return name and facts of an operator in the text of a marker, as `emit_nvtx` writes it; None: it is none.

    >>> operator_in("aten::add, seq = 5, op_id = 7")
    ('aten::add', [('int', 'Sequence number', '5'), ('int', 'op_id', '7')])
    >>> operator_in("step 1")
    """
    match = _OPERATOR.fullmatch(text) if ", " in text else None
    if match is None or not any(match.group(*_FACTS)):
        return None
    return match["name"], list(facts_of_operator(*match.group(*_FACTS)))


_FACTS = ("seq", "op_id", "sizes", "input_op_ids")


def facts_of_operator(*values: object) -> Iterator[Argument]:
    """Yield the facts of an operator, of seq, op_id, sizes and input_op_ids those that are known."""
    for name, value in zip(_FACTS, values, strict=True):
        if value not in (None, "", -1, "-1"):
            yield "int" if name in ("seq", "op_id") else "", _NAMES.get(name, name), str(value)


def facts_in_json(text: str) -> Sequence[Argument]:
    """Return the facts of an operator that RPD's schema 3 keeps as JSON."""
    renamed = ((kind, _NAMES.get(name, name), value) for kind, name, value in arguments_of(text) or ())
    return [fact for fact in renamed if fact[1:] != ("Sequence number", "-1")]


def whole(text: object) -> int | None:
    """Return a whole number that RPD holds as text, such as a pointer or a size; None: it holds none.

    >>> whole("0x10"), whole(16), whole(""), whole("17")
    (16, 16, None, 17)
    """
    if isinstance(text, int):
        return text
    try:
        number = int(str(text), 0)
    except ValueError:
        return None
    return number - (1 << 64) if number >= 1 << 63 else number
