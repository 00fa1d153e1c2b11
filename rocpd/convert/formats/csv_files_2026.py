"""Lists the CSV files of AMD's tool of 2026 and their columns, and chooses between the two years.

Known from AMD's public documents and tests: one file for regions of every category, headers whose words start with a
capital and go on in small letters, a duration at the end. Never reads a database.
"""

from __future__ import annotations

from rocpd.base.types import AmdVersion
from rocpd.convert.formats.csv_cells import Cell, message, number, text
from rocpd.convert.formats.csv_files import FILES, Column, CsvFile

_DURATION: Column = ("Duration", number("duration"))
_NAMES = {"counter_collection": "counter_collection_trace"}

_REGIONS = CsvFile(
    "regions_trace",
    ("regions",),
    (
        ("Domain", text("category")),
        ("Function", message()),
        ("Process_Id", number("pid")),
        ("Thread_Id", number("tid")),
        ("Correlation_Id", number("stack_id")),
        ("Start_Timestamp", number("start")),
        ("End_Timestamp", number("end")),
        _DURATION,
    ),
    stats=("regions_stats", "REGIONS"),
)

_GRAPHS = CsvFile(
    "graph_launch_trace",
    ("graph_launches",),
    (
        ("Queue_Id", number("queue_id")),
        ("Thread_Id", number("tid")),
        ("Graph_Exec_Id", number("graph_exec_id")),
        ("Kernel_Dispatch_Count", number("kernel_dispatch_count")),
        ("Correlation_Id", number("stack_id")),
        ("Start_Timestamp", number("start")),
        ("End_Timestamp", number("end")),
        _DURATION,
    ),
)


def _titled(file: CsvFile) -> CsvFile:
    columns: list[tuple[str, Cell]] = [
        ("_".join(word.capitalize() for word in name.split("_")), cell) for name, cell in file.columns
    ]
    return CsvFile(
        _NAMES.get(file.name, file.name), file.views, (*columns, _DURATION), where=file.where, stats=file.stats
    )


FILES_2026: tuple[CsvFile, ...] = (
    *(_titled(file) for file in FILES if not file.categories),
    _REGIONS,
    _GRAPHS,
)
"""The files in the order in which they are written; statistics and agent_info come last."""


def files_of(version: AmdVersion) -> tuple[CsvFile, ...]:
    """Return the files of a year."""
    return FILES_2026 if version is AmdVersion.V2026 else FILES
