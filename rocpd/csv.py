"""`python -m rocpd.csv`, as in AMD's package: `rocpd convert --output-format csv`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import rocpd2csv

    rocpd2csv()
