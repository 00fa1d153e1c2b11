"""`python -m rocpd` and the `rocpd` script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line with the arguments of the process, then exit."""
    from rocpd.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
