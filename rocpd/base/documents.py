"""Reads the JSON that files hold in text columns; any text may stand there."""

from __future__ import annotations

import json
from typing import Any


def json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object in a text; None where there is none: other JSON, damaged, or nested too deeply.

    >>> json_object('{"a": 1}'), json_object("[1]"), json_object("{")
    ({'a': 1}, None, None)
    """
    content = json_value(text)
    return content if isinstance(content, dict) else None


def json_value(text: object) -> Any:
    """Return what the JSON in a cell says; None where it is none, damaged, or nested too deeply.

    >>> json_value("[1]"), json_value("["), json_value("[" * 100_000), json_value(3)
    ([1], None, None, None)
    """
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
