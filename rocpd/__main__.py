"""`python -m rocpd` and the `rocpd` script."""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, then exit."""
    from rocpd.cli import start

    start()


if __name__ == "__main__":
    main()
