"""`python -m rocpd.merge`, as in AMD's package: `rocpd merge`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import merge

    merge()
