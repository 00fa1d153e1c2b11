"""`python -m rocpd.schema --create FILE`, as in RPD's package: makes a database without events.

The recorder of rocpd makes its databases itself: no file has to exist before it starts.
"""

from __future__ import annotations


def main() -> None:
    """Make the file that the command line names; refuse to replace an existing file."""
    import argparse
    import sys
    import uuid

    from rocpd.base import RocpdError
    from rocpd.base.texts import visible
    from rocpd.schema.write import create

    parser = argparse.ArgumentParser("python -m rocpd.schema", description="Make a database without events.")
    parser.add_argument("--create", metavar="FILE", required=True, help="file to make; it must not exist")
    try:
        with create(parser.parse_args().create, str(uuid.uuid4())):
            pass
    except RocpdError as error:
        sys.stderr.write(f"rocpd: {visible(error.message)}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
