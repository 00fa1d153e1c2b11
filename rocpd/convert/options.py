"""The options of trace formats as one frozen value; each field declares its own.

Reads no database and does not check that outputs are free (the writers do). Imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rocpd.base import AmdVersion, frozen
from rocpd.base.option import Heading, declare, plain
from rocpd.base.output import Destination

GZIP = ".gz"
"""Ending of compressed outputs."""


class AgentIndex(enum.StrEnum):
    """Names of agents: `Agent 4` (hardware node), `Agent 2` (visible ones), `GPU 1` (visible ones of a type)."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"
    TYPE_RELATIVE = "type-relative"

    @property
    def column(self) -> str:
        """The column of `rocpd_info_agent` that holds the index."""
        return {"absolute": "absolute_index", "relative": "logical_index", "type-relative": "type_index"}[self.value]

    @property
    def view_column(self) -> str:
        """The column of readable views that holds the index."""
        return {"absolute": "agent_abs_index", "relative": "agent_log_index"}.get(self.value, "agent_type_index")

    @property
    def has_type(self) -> bool:
        """Whether the agent's type precedes the index, in place of `Agent`."""
        return self is AgentIndex.TYPE_RELATIVE


class Split(enum.StrEnum):
    """The parts of a job that get separate outputs."""

    RANK = "rank"
    NODE = "node"


def _views() -> Iterable[str]:
    from rocpd.schema.load import VIEWS

    return VIEWS


@frozen
class ConvertOptions:
    """The place of outputs and the look of events. `rocpd.convert.FORMATS` has the options of each format.

    Args:
        folder: folder of the outputs; created if missing.
        name: base name of the outputs: `out` gives `out.pftrace`, `out_kernel_trace.csv` …; a name that ends in `.gz`
            asks for `gzip`.
        force: replace existing outputs.
        ending: the ending of the user's name for the output, if a format has this ending: `.arrow` of `-o x.arrow`.
        group_by_queue: one track per agent and HSA queue instead of HIP stream.
        agent_index_value: index of an agent in its name; None: the index within its type in traces (`GPU 1`), the index
            among visible agents in CSV and in names of counters, as AMD's tools have it.
        kernel_rename: the text of the enclosing marker names a kernel.
        annotate_args: API calls carry their arguments.
        annotate_pmc: dispatches carry their counter values.
        processes: ranks are processes and threads are threads, as queries and AMD's reader of traces need them; else
            they are plain groups of tracks, whose order Perfetto's UI keeps.
        queue_depth: adds a counter of launched operations that have not started, per agent.
        split: one output per rank or node instead of one for all.
        gzip: compress outputs.
        stats: also write the statistics files of rocprofv3.
        views: readable views to write: parquet (default: the views that make up a trace), arrow (one, default kernels).
        amd_version: version of AMD's tool whose names of files and columns are used.
        with_rank: rows hold the number of their rank and its host name.
        arrow_stream: write the streaming format instead of a file.
        further: values of options that a format of another package declares, by name.
    """

    folder: Path
    name: str = "out"
    force: bool = False
    ending: str = ""
    group_by_queue: bool = declare(
        False, "One track per HSA queue, not per HIP stream.", heading=Heading.AMD, is_lenient=True
    )
    agent_index_value: AgentIndex | None = declare(
        None, "Agent 0/2/4, Agent 0/1/2, or CPU 0/GPU 0/GPU 1.", heading=Heading.AMD, is_lenient=True
    )
    kernel_rename: bool = declare(
        False, "Name kernels by their enclosing marker.", heading=Heading.AMD, is_lenient=True
    )
    annotate_args: bool = declare(False, "Show the arguments of API calls.", heading=Heading.AMD, is_lenient=True)
    annotate_pmc: bool = declare(False, "Show counter values with their kernel.", heading=Heading.AMD, is_lenient=True)
    processes: bool = declare(False, "Ranks as processes and threads, for queries by pid and tid.")
    queue_depth: bool = declare(False, "Also count, per agent, launched operations that wait.")
    split: Split | None = plain(None, "One output per rank or node.", heading=Heading.OUTPUT)
    gzip: bool = plain(False, "Compress outputs, as a NAME that ends in .gz does.", heading=Heading.OUTPUT)
    stats: bool = declare(False, "Also write rocprofv3's statistics files.", heading=Heading.AMD)
    views: tuple[str, ...] = plain(
        (), "Only this view, repeatable; arrow: one, else kernels.", "VIEW", ("--view",), complete=_views
    )
    amd_version: AmdVersion = declare(
        AmdVersion.V2025, "Files and columns of AMD's tool of this year.", heading=Heading.AMD
    )
    with_rank: bool = plain(False, "Also columns with the rank and its host.")
    arrow_stream: bool = declare(False, "Write a stream, not a file.")
    further: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def at(cls, target: Destination, force: bool, **fields: Any) -> ConvertOptions:
        """Return the options for outputs at `target`; a `.gz` after a format's ending compresses them."""
        fields["gzip"] = fields.get("gzip", False) or target.ending.endswith(GZIP)
        return cls(target.folder, target.name, force, target.ending.removesuffix(GZIP), **fields)

    def path(self, ending: str) -> Path:
        """Return the path of one output: folder, base name and `ending`, such as `.pftrace`."""
        return self.folder / f"{self.name}{ending}"

    def ending_of(self, usual: str, *endings: str) -> str:
        """Return the ending of the names of outputs: the user's ending if it is one of `endings`, else `usual`."""
        return self.ending if self.ending in endings else usual

    def without_gz(self, endings: Iterable[str]) -> ConvertOptions:
        """Return the same with `gzip` in place of a `.gz` in the name; removes one of `endings` before it, too."""
        if not self.name.lower().endswith(GZIP):
            return self
        name = self.name[: -len(GZIP)]
        ending = max((ending for ending in endings if name.endswith(ending)), key=len, default="")
        return dataclasses.replace(self, name=name.removesuffix(ending) or "out", ending=ending, gzip=True)
