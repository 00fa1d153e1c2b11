"""Names of RPD and RAPTOR, for programs and command lines that were written for them.

`from rocpd.rpd import rpdTracerControl` records, `RaptorParser` reads; `python -m rocpd.rpd.graph`, `.callstack` and
`.autograd` show the tables that RPD's tools wrote into a trace. Nothing here writes to an input, and nothing else in
rocpd uses it.
"""

from __future__ import annotations

from rocpd.rpd.control import rpdTracerControl
from rocpd.rpd.raptor import RaptorParser

__all__ = ["RaptorParser", "rpdTracerControl"]
