"""`python -m rocpd.pftrace`, as in AMD's package: `rocpd convert --output-format pftrace`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import rocpd2pftrace

    rocpd2pftrace()
