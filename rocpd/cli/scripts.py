"""Owns AMD's helper scripts: `rocpd2csv` is `rocpd convert --output-format csv`, and so on."""

from __future__ import annotations

import sys


def rocpd2csv() -> None:
    """Run `rocpd convert --output-format csv` with the arguments of the process."""
    _run("convert", "--output-format", "csv")


def rocpd2pftrace() -> None:
    """Run `rocpd convert --output-format pftrace` with the arguments of the process."""
    _run("convert", "--output-format", "pftrace")


def rocpd2otf2() -> None:
    """Run `rocpd convert --output-format otf2` with the arguments of the process."""
    _run("convert", "--output-format", "otf2")


def rocpd2summary() -> None:
    """Run `rocpd summary` with the arguments of the process."""
    _run("summary")


def _run(*words: str) -> None:
    from rocpd.cli import run

    sys.exit(run([*words, *sys.argv[1:]]))
