"""rocpd makes the profile databases of a GPU job answer as one.

>>> import rocpd
>>> with rocpd.connect(["rank0.db", "rank1.db"]) as s:
...     s.sql("select rank, count(*) as kernels, sum(duration) as ns from kernels group by rank").show()
rank  kernels  ns
----  -------  --
   0        1  10
   1        1  20

Names are imported when first used, so that `import rocpd` is quick.
"""

from __future__ import annotations

TYPE_CHECKING = False  # of typing, whose import takes long

if TYPE_CHECKING:
    from rocpd.agents.questions import answers
    from rocpd.base import InputError, OutputError, QueryError, RocpdError, UsageError
    from rocpd.base.version import __version__
    from rocpd.federate.result import Result
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.history.history import HistoryOptions, JobHistory, open_history
    from rocpd.importers.run import import_traces
    from rocpd.session import Session, advise, connect
    from rocpd.simulator.interface import simulate
    from rocpd.summary.reading import analyses

__all__ = [
    "Filters",
    "HistoryOptions",
    "InputError",
    "JobHistory",
    "OutputError",
    "QueryError",
    "Result",
    "RocpdError",
    "Session",
    "UsageError",
    "Window",
    "__version__",
    "advise",
    "analyses",
    "answers",
    "connect",
    "import_traces",
    "open_history",
    "simulate",
]

_NAMES = {
    "rocpd.agents.questions": ("answers",),
    "rocpd.base": ("InputError", "OutputError", "QueryError", "RocpdError", "UsageError"),
    "rocpd.base.version": ("__version__",),
    "rocpd.federate.result": ("Result",),
    "rocpd.federate.select.filters": ("Filters",),
    "rocpd.federate.select.window": ("Window",),
    "rocpd.history.history": ("HistoryOptions", "JobHistory", "open_history"),
    "rocpd.importers.run": ("import_traces",),
    "rocpd.session": ("Session", "advise", "connect"),
    "rocpd.simulator.interface": ("simulate",),
    "rocpd.summary.reading": ("analyses",),
    # of AMD's package, for code that was written for it; not part of our own interface
    "rocpd.amd": ("RocpdImportData", "execute", "version_info", "write_csv", "write_otf2", "write_perfetto"),
}
"""Module -> the names that it defines."""

_AMDS_MODULES = frozenset({"importer", "output_config", "query"})


def __getattr__(name: str) -> object:
    import importlib

    if name in _AMDS_MODULES:
        return importlib.import_module(f"rocpd.{name}")
    home = next((module for module, names in _NAMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'rocpd' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
