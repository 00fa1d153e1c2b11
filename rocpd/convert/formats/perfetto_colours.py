"""Owns how slices of one kind of work get one colour in Perfetto's UI, as near to `rocpd.table.palette` as it can.

A trace cannot name colours. The UI calculates the colour of a slice from its correlation id where it has one, else from
its name: hue and lightness are hashes of the text (ui/src/components/colorizer.ts). So the correlation id is the kind,
followed by characters that nobody sees, chosen so that the hashes come out right; saturation is fixed, so that grey is
an olive. Versions before 51 colour by name.
"""

from __future__ import annotations

_UNSEEN = "\u200b\u200c\u200d\u2060"  # zero-width space, non-joiner, joiner; word joiner
_CHOSEN = {
    "GEMM": "2103",
    "attention": "1223",
    "communication": "2301",
    "elementwise": "1103",
    "reduction": "2320",
    "copy": "1031",
    "other": "021",
    "compute": "211",
    "exposed communication": "0301",
    "hidden communication": "332",
    "exposed copies": "3033",
}
"""Kind of work -> which of the characters follow it."""


def correlation(kind: str) -> str:
    """Return the correlation id of slices of a kind; a kind without a chosen colour has that of its own text.

    >>> correlation("GEMM").startswith("GEMM"), correlation("mine")
    (True, 'mine')
    """
    return kind + "".join(_UNSEEN[int(digit)] for digit in _CHOSEN.get(kind, ""))
