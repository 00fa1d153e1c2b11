"""The first reading of a PyTorch trace: what rows need to know before the first is written.

Much of it stands at the end of the file (the clock, the names of threads), or elsewhere than the event that it belongs
to (the size of a copy, the arguments of a collective). It grows with the number of threads, copies, collectives and
forward-backward links, not with that of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rocpd.importers.json_events import Event
from rocpd.importers.torch_collectives import ANNOTATION, OPERATOR, Range, arguments_of

OPERATORS, PYTHON, ANNOTATIONS = "cpu_op", "python_function", "user_annotation"
KERNELS, COPIES, SETS, GPU_ANNOTATIONS = "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"
CALLS = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "privateuse1_driver")
ON_GPU = frozenset({KERNELS, COPIES, SETS, GPU_ANNOTATIONS, "cuda_sync", "gpu_mem"})

_FORMER = {
    "operator": OPERATORS, "runtime": "cuda_runtime", "memcpy": COPIES, "memset": SETS, "python": PYTHON,
    "annotation": ANNOTATIONS,
}  # fmt: skip


def category_of(event: Mapping[str, Any]) -> str:
    """Return the category of an event by its present name: PyTorch 1.8 called operators `Operator`."""
    category = str(event.get("cat", ""))
    return _FORMER.get(category.lower(), category if category.islower() else category.lower())


class KinetoSurvey:
    """What a trace says of its process.

    Attributes:
        threads: thread as events name it -> its name.
        processes: process as events name it -> its name.
        copied: correlation id -> bytes, of calls that copy.
        links: thread and time of an operator -> ids of the links to its forward or backward operator.
        facts: the other keys of the file.
        span: first start and last end of what ran on the CPU, as the file has them.
        devices: numbers of GPUs as operations have them, and as PyTorch's allocator does.
    """

    def __init__(self) -> None:
        self.threads: dict[Any, str] = {}
        self.processes: dict[Any, str] = {}
        self.copied: dict[int, int] = {}
        self.links: dict[tuple[Any, float], list[int]] = {}
        self.facts: dict[str, Any] = {}
        self.span: tuple[float, float] | None = None
        self.devices: tuple[set[int], set[int]] = (set(), set())
        self._collectives: list[Range] = []
        self._pids: Counter[Any] = Counter()

    def add(self, events: Iterable[Event]) -> None:
        """Look at events."""
        for event in events:
            phase = event.get("ph")
            if phase == "X":
                self._add_range(event)
            elif phase == "M":
                self._add_name(event)
            elif phase == "i" and event.get("name") == "[memory]":
                self._add_device(event, 1, "Device Id")
            elif phase in ("s", "f") and event.get("cat") == "fwdbwd" and isinstance(event.get("id"), int):
                self.links.setdefault((event.get("tid"), event.get("ts", 0)), []).append(event["id"])

    @property
    def pid(self) -> int:
        """Id of the process: that of most calls and operators."""
        known = [pid for pid, _ in self._pids.most_common() if isinstance(pid, int)]
        return known[0] if known else 0

    @property
    def base(self) -> int:
        """What is added to times [ns]: then they count from 1970."""
        base = self.facts.get("baseTimeNanoseconds", 0)
        return base if isinstance(base, int) else 0

    def collectives(self) -> dict[tuple[object, float, str], dict[str, str]]:
        """Return the arguments of collectives by the ranges that carry them out."""
        return arguments_of(self._collectives)

    def _add_range(self, event: Event) -> None:
        category = category_of(event)
        if category in (KERNELS, COPIES, SETS):
            self._add_device(event, 0, "device")
        if category in ON_GPU or category == "trace":
            return
        start = event.get("ts")
        if not isinstance(start, (int, float)):
            return
        self._pids[event.get("pid")] += category != PYTHON
        end = start + (event.get("dur") or 0)
        first, last = self.span or (start, end)
        self.span = min(first, start), max(last, end)
        name = event.get("name")
        arguments = event.get("args")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return
        if name == OPERATOR or (name.startswith(ANNOTATION) and category == ANNOTATIONS):
            self._collectives.append(Range(event.get("tid"), start, end, name, arguments))
        elif category in CALLS and ("bytes" in arguments or "size" in arguments):
            self._add_copy(arguments)

    def _add_device(self, event: Event, whose: int, key: str) -> None:
        arguments = event.get("args")
        device = arguments.get(key) if isinstance(arguments, dict) else None
        if isinstance(device, int) and device >= 0:
            self.devices[whose].add(device)

    def _add_copy(self, arguments: Mapping[str, Any]) -> None:
        size = str(arguments.get("bytes", arguments.get("size")))
        correlation = arguments.get("correlation")
        if size.isdigit() and isinstance(correlation, int):
            self.copied[correlation] = int(size)

    def _add_name(self, event: Event) -> None:
        arguments = event.get("args")
        name = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(name, str):
            return
        if event.get("name") == "thread_name":
            self.threads[event.get("pid"), event.get("tid")] = name
        elif event.get("name") == "process_name":
            self.processes[event.get("pid")] = name
