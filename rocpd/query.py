"""`python -m rocpd.query`, as in AMD's package: `rocpd query`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import query

    query()
