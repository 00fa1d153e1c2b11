"""`python -m rocpd.rpd.graph`: launches of graphs, which RPD's tool wrote into the trace."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.rpd.answers import answer

    answer("select * from graphLaunch")
