"""Traces of PyTorch's profiler (Kineto), on ROCm and CUDA: one process, as JSON, mostly compressed.

The file is read twice: what rows need to know stands anywhere in it (`kineto_survey`), rows are written in the second
reading (`kineto_rows`). Both go through the file in pieces.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.kineto_survey import KinetoSurvey
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_SCHEMA = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|record_shapes)"\s*:')
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|cuda_runtime|cuda_driver|kernel|gpu_memcpy|Operator)"'
)


def knows(head: InputHead) -> bool:
    """Whether it is a PyTorch trace: it lists trace events, and has keys or categories of Kineto."""
    start = head.start.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_list = start.startswith(b"[") or (start.startswith(b"{") and b'"traceEvents"' in start)
    return (is_list and bool(_CATEGORY.search(start))) or (start.startswith(b"{") and bool(_SCHEMA.search(start)))


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write the process of a PyTorch trace.

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """
    from rocpd.importers.json_events import JsonEvents
    from rocpd.importers.kineto_rows import KinetoRows
    from rocpd.importers.kineto_survey import KinetoSurvey
    from rocpd.schema.trace.infos import NodeInfo

    survey = KinetoSurvey()
    first = JsonEvents(source.path, target.lose)
    with source.stream() as stream:
        for events in first.batches(stream):
            survey.add(events)
    survey.facts = first.facts
    # Nothing in the file names the machine: clocks of two files compare as well as NTP sets them.
    node = NodeInfo(machine_id=f"kineto-{source.digest}", hostname=source.path.name)
    with target.rank(survey.pid, node, _process(survey)) as trace, source.stream() as stream:
        rows = KinetoRows(trace, survey, target.lose)
        for events in JsonEvents(source.path, lambda _: None).batches(stream):
            rows.add(events)
        trace.note("clock", "CLOCK_REALTIME")
        for name, value in survey.facts.items():
            if isinstance(value, (str, int, float)):
                trace.note(f"kineto::{name}", str(value))


def _process(survey: KinetoSurvey) -> Any:
    from rocpd.schema.trace.infos import ProcessInfo

    info = survey.facts.get("distributedInfo")
    job = info if isinstance(info, dict) else {}
    extdata = {"distributedInfo": job} if job else {}
    for name, key in (("mpi_rank", "rank"), ("mpi_size", "world_size")):
        if isinstance(job.get(key), int):
            extdata[name] = job[key]
    first, last = (survey.base + round(time * 1000) for time in survey.span or (0, 0))
    return ProcessInfo(
        survey.pid,
        start=first if survey.span else None,
        end=last if survey.span else None,
        command=survey.processes.get(survey.pid),
        extdata=json.dumps(extdata),
    )
