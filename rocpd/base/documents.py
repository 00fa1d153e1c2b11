"""Reads the JSON that files hold in text columns; any text may stand there."""

from __future__ import annotations

import json
from typing import Any


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in a text; None where there is none: other JSON, damaged, or nested too deeply.

    >>> json_object('{"a": 1}'), json_object("[1]"), json_object("{"), json_object("[" * 100_000)
    ({'a': 1}, None, None, None)
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
