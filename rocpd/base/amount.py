"""Says how many there are of something, for people."""

from __future__ import annotations


def amount(number: int, noun: str) -> str:
    """Say how many.

    >>> amount(1, "file"), amount(0, "rank")
    ('1 file', '0 ranks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
