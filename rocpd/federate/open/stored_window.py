"""The window of which a merged file holds the rows, as its metadata says."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rocpd.base.frozen import frozen

TAG = "rocpd_window"
"""Tag of the window in the metadata of a rank."""


@frozen
class StoredWindow:
    """The window of which a file holds the rows: start and end by the clock of the rank [ns].

    Args:
        start, end: what counted.
        by_launch: whether GPU work counted where it was launched.
    """

    start: int
    end: int
    by_launch: bool = False

    @classmethod
    def read(cls, metadata: Iterable[tuple[str, str]]) -> StoredWindow | None:
        """Return the window that metadata rows (tag, value) name; None without one, or where it is damaged."""
        for tag, value in metadata:
            if tag == TAG:
                try:
                    fields = json.loads(value)
                    return cls(int(fields["start"]), int(fields["end"]), bool(fields["by_launch"]))
                except (ValueError, KeyError, TypeError):
                    return None
        return None

    def text(self) -> str:
        """Return the value for the metadata."""
        return json.dumps({"start": self.start, "end": self.end, "by_launch": self.by_launch})
