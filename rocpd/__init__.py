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
    from rocpd.base.errors import InputError, OutputError, QueryError, RocpdError, UsageError
    from rocpd.base.version import __version__
    from rocpd.federate.result import Result
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.history.history import HistoryOptions, JobHistory, open_history
    from rocpd.importers.run import import_traces
    from rocpd.session import Session, advise, connect
    from rocpd.simulator.interface import simulate
    from rocpd.summary.run import analyses

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
    "connect",
    "import_traces",
    "open_history",
    "simulate",
]

_MODULES = {
    "__version__": "rocpd.base.version",
    "advise": "rocpd.session",
    "analyses": "rocpd.summary.run",
    "connect": "rocpd.session",
    "import_traces": "rocpd.importers.run",
    "open_history": "rocpd.history.history",
    "simulate": "rocpd.simulator.interface",
    "Session": "rocpd.session",
    "JobHistory": "rocpd.history.history",
    "HistoryOptions": "rocpd.history.history",
    "Result": "rocpd.federate.result",
    "Window": "rocpd.federate.select.window",
    "Filters": "rocpd.federate.select.filters",
    "RocpdError": "rocpd.base.errors",
    "InputError": "rocpd.base.errors",
    "OutputError": "rocpd.base.errors",
    "QueryError": "rocpd.base.errors",
    "UsageError": "rocpd.base.errors",
}


_AMDS = {
    "RocpdImportData": "rocpd.amd",
    "execute": "rocpd.amd",
    "version_info": "rocpd.amd",
    "write_csv": "rocpd.amd",
    "write_perfetto": "rocpd.amd",
    "write_otf2": "rocpd.amd",
}
"""Names of AMD's package, for code that was written for it; not part of our own interface."""

_AMDS_MODULES = frozenset({"importer", "output_config", "query"})


def __getattr__(name: str) -> object:
    import importlib

    if name in _AMDS_MODULES:
        return importlib.import_module(f"rocpd.{name}")
    home = _MODULES.get(name) or _AMDS.get(name)
    if home is None:
        raise AttributeError(f"module 'rocpd' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
