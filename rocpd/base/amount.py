"""Says how many there are of something, and how much, for people."""

from __future__ import annotations


def amount(number: int, noun: str) -> str:
    """Say how many.

    >>> amount(1, "file"), amount(0, "rank")
    ('1 file', '0 ranks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def bytes_text(size: float) -> str:
    """Say how much.

    >>> bytes_text(999), bytes_text(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
