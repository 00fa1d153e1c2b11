"""`python -m rocpd` and the `rocpd` script."""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, then exit."""
    try:
        from rocpd.cli import start
    except KeyboardInterrupt:  # `start` handles it from here on
        raise SystemExit(130) from None
    start()


if __name__ == "__main__":
    main()
