"""The things that events refer to: node, process, threads, agents, queues, streams, code, counters, tracks.

An object of a class is a row of one `rocpd_info_*` table (or of `rocpd_track`); fields are named like the columns.
Gives defaults to rows without a description, so that every id in an event can have a row. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from rocpd.base import frozen


@frozen
class Info:
    """A row that other rows refer to by its id.

    Args:
        id: its id, chosen like rocprofv3's: OS pid, OS tid, hardware index, runtime handle; None: the next free id.
    """

    TABLE: ClassVar[str]
    FROM_ID: ClassVar[Mapping[str, Callable[[int], object]]] = {}
    """Field -> function of the id that gives its default value."""

    id: int | None = None

    @property
    def chosen_id(self) -> int | None:
        """The id that the description asks for; None: any id."""
        return self.id

    def described(self, id: int) -> Self:
        """Return the row with this id, and with the defaults that follow from it."""
        values: dict[str, Any] = {
            name: value(id) for name, value in self.FROM_ID.items() if getattr(self, name) is None
        }
        return replace(self, id=id, **values)


@frozen(kw_only=True)
class NodeInfo(Info):
    """The machine; `id` and `hash` follow from `machine_id`, so that all its processes agree."""

    TABLE = "rocpd_info_node"

    machine_id: str
    hash: int | None = None
    system_name: str | None = None
    hostname: str | None = None
    release: str | None = None
    version: str | None = None
    hardware_name: str | None = None
    domain_name: str | None = None

    @property
    def chosen_id(self) -> int:
        """The id that the description asks for: the lower bits of the hash, as in rocprofv3."""
        return self._hash & 0x7FFFFFFF if self.id is None else self.id

    def described(self, id: int) -> Self:
        """Return the row with its hash."""
        return replace(self, id=id, hash=self._hash)

    @property
    def _hash(self) -> int:
        """The given hash, else the upper 63 bits of the 64-bit FNV-1a hash of the machine id, as in the recorder."""
        if self.hash is not None:
            return self.hash
        value = 0xCBF29CE484222325
        for byte in self.machine_id.encode():
            value = (value ^ byte) * 0x100000001B3 % (1 << 64)
        return value >> 1


@frozen(kw_only=True)
class ProcessInfo(Info):
    """The process; `id` is its OS pid, times are on the node's clock [ns], `environment` and `extdata` JSON."""

    TABLE = "rocpd_info_process"
    FROM_ID: ClassVar = {"pid": int}

    pid: int | None = None
    ppid: int | None = None
    init: int | None = None
    fini: int | None = None
    start: int | None = None
    end: int | None = None
    command: str | None = None
    environment: str | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class ThreadInfo(Info):
    """A thread; `id` is its OS tid."""

    TABLE = "rocpd_info_thread"
    FROM_ID: ClassVar = {"tid": int}

    tid: int | None = None
    name: str | None = None
    start: int | None = None
    end: int | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class AgentInfo(Info):
    """A CPU, GPU or NIC; `id` is its absolute index, `type` None where unknown; `extdata` JSON."""

    TABLE = "rocpd_info_agent"
    FROM_ID: ClassVar = {"absolute_index": int, "name": "agent {}".format}

    type: str | None = None
    absolute_index: int | None = None
    logical_index: int | None = None
    type_index: int | None = None
    uuid: int | None = None
    name: str | None = None
    model_name: str | None = None
    vendor_name: str | None = None
    product_name: str | None = None
    user_name: str | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class QueueInfo(Info):
    """An HSA queue; `id` is its handle, 0 the default queue."""

    TABLE = "rocpd_info_queue"
    FROM_ID: ClassVar = {"name": lambda id: f"Queue {id}" if id else "Default Queue"}

    name: str | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class StreamInfo(Info):
    """A HIP stream; `id` is its handle, 0 the default stream."""

    TABLE = "rocpd_info_stream"
    FROM_ID: ClassVar = {"name": lambda id: f"Stream {id}" if id else "Default Stream"}

    name: str | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class CounterInfo(Info):
    """A hardware or sampled counter (PMC)."""

    TABLE = "rocpd_info_pmc"

    agent_id: int | None = None
    target_arch: str | None = None
    event_code: int | None = None
    instance_id: int | None = None
    name: str | None = None
    symbol: str | None = None
    description: str | None = None
    long_description: str | None = None
    component: str | None = None
    units: str | None = None
    value_type: str | None = None
    block: str | None = None
    expression: str | None = None
    is_constant: int | None = None
    is_derived: int | None = None
    extdata: str | None = None
    spm_support: int | None = None

    def described(self, id: int) -> Self:
        """Return the row with its defaults; the default symbol is the name."""
        name = f"counter {id}" if self.name is None else self.name
        return replace(self, id=id, name=name, symbol=name if self.symbol is None else self.symbol)


@frozen(kw_only=True)
class CodeObjectInfo(Info):
    """A loaded code object; sizes in bytes."""

    TABLE = "rocpd_info_code_object"
    FROM_ID: ClassVar = {"uri": lambda _: "unknown"}

    agent_id: int | None = None
    uri: str | None = None
    load_base: int | None = None
    load_size: int | None = None
    load_delta: int | None = None
    storage_type: str | None = None
    extdata: str | None = None


@frozen(kw_only=True)
class KernelInfo(Info):
    """A kernel symbol; sizes in bytes. Traces without code objects leave `code_object_id` at 0, for unknown."""

    TABLE = "rocpd_info_kernel_symbol"

    code_object_id: int = 0
    kernel_name: str | None = None
    display_name: str | None = None
    kernel_object: int | None = None
    kernarg_segment_size: int | None = None
    kernarg_segment_alignment: int | None = None
    group_segment_size: int | None = None
    private_segment_size: int | None = None
    sgpr_count: int | None = None
    arch_vgpr_count: int | None = None
    accum_vgpr_count: int | None = None
    extdata: str | None = None

    def described(self, id: int) -> Self:
        """Return the row with its defaults; a missing name is replaced by the other one."""
        names = (self.display_name, self.kernel_name, f"kernel {id}")
        shown = next(name for name in names if name is not None)
        linked = shown if self.kernel_name is None else self.kernel_name
        return replace(self, id=id, kernel_name=linked, display_name=shown)


@frozen(kw_only=True)
class TrackInfo(Info):
    """The track of samples; `tid` None: a track of the process."""

    TABLE = "rocpd_track"
    FROM_ID: ClassVar = {"name": "track {}".format}

    tid: int | None = None
    name: str | int | None = None
    extdata: str | None = None


REFERENCES: dict[str, type[Info]] = {
    "tid": ThreadInfo,
    **dict.fromkeys(("agent_id", "src_agent_id", "dst_agent_id"), AgentInfo),
    "queue_id": QueueInfo,
    "stream_id": StreamInfo,
    "pmc_id": CounterInfo,
    "code_object_id": CodeObjectInfo,
    "kernel_id": KernelInfo,
    "track_id": TrackInfo,
}
"""Columns of any table that hold the id of a thing -> class of the thing."""
