"""`python -m rocpd.query`, as in AMD's package: `rocpd query`; and its `export_sqlite_query`. See `rocpd.amd`."""

from __future__ import annotations

from rocpd.amd import export_sqlite_query

__all__ = ["export_sqlite_query"]

if __name__ == "__main__":
    from rocpd.cli.scripts import query

    query()
