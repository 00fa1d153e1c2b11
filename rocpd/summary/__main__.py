"""`python -m rocpd.summary`, as in AMD's package: `rocpd summary`."""

from __future__ import annotations

if __name__ == "__main__":
    from rocpd.cli.scripts import rocpd2summary

    rocpd2summary()
