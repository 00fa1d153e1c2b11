"""What RPD's tools wrote into a trace, answered by SQL: `python -m rocpd.rpd.graph` and its like."""

from __future__ import annotations

import sys


def answer(statement: str) -> None:
    """Run `rocpd query` with a statement, on the traces that the command line names, and exit."""
    from rocpd.cli import start

    sys.stderr.write(f"nothing is written into the trace; on any one answers: {statement}\n")
    start("query", statement)
