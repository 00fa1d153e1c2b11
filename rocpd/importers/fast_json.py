"""The JSON parser of importers: traces have millions of events, which Python's own takes five times as long for."""

from __future__ import annotations

from typing import Any

from rocpd.errors import UsageError

try:
    import orjson
except ImportError as error:
    raise UsageError("traces in JSON need the package orjson: pip install 'rocpd[json]'") from error


def parsed(text: bytes) -> Any:
    """Return what a text holds.

    Raises:
        ValueError: it is no JSON.
    """
    return orjson.loads(text)


def text(value: Any) -> str:
    """Return a value as JSON without spaces."""
    return orjson.dumps(value).decode()
