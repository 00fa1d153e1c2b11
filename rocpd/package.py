"""`python -m rocpd.package`, as in AMD's package: `rocpd package`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import package

    package()
