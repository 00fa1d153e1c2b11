"""Statistics of durations, as summaries know them; they live in `rocpd.federate.moments`, which converters use too."""

from __future__ import annotations

from rocpd.federate.moments import Moments, of_one

__all__ = ["Moments", "of_one"]
