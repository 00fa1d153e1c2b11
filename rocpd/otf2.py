"""`python -m rocpd.otf2`, as in AMD's package: `rocpd convert --output-format otf2`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import rocpd2otf2

    rocpd2otf2()
