"""Reports that RPD's tools wrote into a trace, answered by SQL: `python -m rocpd.rpd.graph` and its like."""

from __future__ import annotations


def answer(statement: str) -> None:
    """Run `rocpd query` with a statement on the traces of the command line, and exit."""
    from rocpd.cli import start
    from rocpd.cli.diagnostics import say

    say(f"nothing is written into the trace; on any one answers: {statement}\n")
    start("query", statement)
