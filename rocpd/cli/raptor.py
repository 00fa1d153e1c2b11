"""Owns `rocpd raptor`: RAPTOR's command lines, which print its tables with right numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.cli.analyses import Delivery
from rocpd.cli.diagnostics import standard_output
from rocpd.cli.options import Execution, Inputs, SelectionOptions

if TYPE_CHECKING:
    from rocpd.session import Session

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "": 10**6}
_TIME = re.compile(r"([+-]?)(\d*\.?\d+|\d+\.)\s*(ns|us|ms|s|sec|)")


@frozen
class RaptorOptions:
    """Which tables, of which part, and how kernels are told apart."""

    categorize: Annotated[bool, Option("Show time by category.", flags=("-c", "--categorize"))] = False
    top: Annotated[
        bool, Option("Show kernels after the same others.", flags=("-k", "--top"), hidden_flags=("--kernelseq",))
    ] = False
    variability: Annotated[bool, Option("Show the time above the shortest instances.")] = False
    op_trace: Annotated[bool, Option("Show each operation.")] = False
    prekernel_seq: Annotated[
        int, Option("Kernels before that tell one apart; 0: none.", "N", hidden_flags=("--kernelseq-len",), least=0)
    ] = 2
    roi_start: Annotated[str | None, Option("From: 12.5 (ms), +3us, -1s (from the end), 40%, or a kernel.", "TIME")] = (
        None
    )
    roi_end: Annotated[str | None, Option("To, in the same forms.", "TIME")] = None
    auto_roi: Annotated[
        bool, Option("From the first to the last run of the hottest kernel.", hidden_flags=("--auto-roi-top",))
    ] = False
    gpu_id: Annotated[str | None, Option("Only this agent.", "ID")] = None
    categories: Annotated[Path | None, Option("JSON of categories, as RAPTOR has it.", "FILE")] = None
    limit: Annotated[int, Option("Rows of a table; 0 shows all.", "N", least=0)] = 0


def raptor(inputs: Inputs, asked: RaptorOptions) -> None:
    """Show RAPTOR's tables, for its command lines.

    The tables and their columns are called as RAPTOR's; docs/from-rpd.md says where the numbers differ, and why. Any
    input is taken, not only .rpd files.

    Examples:
        rocpd raptor mytrace.rpd.gz --categorize --top
        rocpd raptor mytrace.rpd.gz --categorize --top --auto-roi
        rocpd raptor mytrace.rpd.gz --op-trace --roi-start 10ms --roi-end 20ms
    """
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window

    with SelectionOptions().connect(inputs, Execution()) as whole:
        session = whole.where(Filters(agents=asked.gpu_id)) if asked.gpu_id else whole
        edges = edge(session, asked.roi_start), edge(session, asked.roi_end)
        window = Window(*edges, auto_roi=asked.auto_roi)
        _show(session.within(window) if window else session, asked)


def edge(session: Session, text: str | None) -> str | None:
    """Return an edge of the region of interest as an edge of a window.

    Raises:
        UsageError: no time, and no kernel matches.
    """
    if text is None or text.endswith("%"):
        return text
    match = _TIME.fullmatch(text)
    if match:
        sign, number, unit = match.groups()
        return f"{sign or '+'}{round(float(number) * _UNITS[unit])}ns"
    from rocpd.federate.select.window import Window
    from rocpd.summary.reading import Reading

    start, _ = Reading(session.within(Window(kernel=text))).line()
    return f"+{start}ns"


def _show(session: Session, asked: RaptorOptions) -> None:
    from rocpd.facts.rank import Options
    from rocpd.summary.kernels.op_trace import raptor as trace_of
    from rocpd.summary.kernels.raptor import raptor as tables_of
    from rocpd.summary.reading import Reading

    asked_for = {
        "raptor-categories": asked.categorize,
        "raptor-top": asked.top,
        "raptor-variability": asked.variability,
    }
    names = [name for name, is_asked in asked_for.items() if is_asked]
    if not names and not asked.op_trace:
        names = ["raptor-categories", "raptor-top"]
    reading = Reading(session, Options(categories=asked.categories, sequence=asked.prekernel_seq))
    if names:
        shown = (table for table in tables_of(reading) if table.name in names)
        Delivery(None, None, limit=asked.limit).write(shown, names)
    if asked.op_trace:
        with standard_output() as out:
            for text in trace_of(reading):
                out.write(text)
