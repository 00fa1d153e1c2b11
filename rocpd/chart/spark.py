"""Owns distributions that are as small as a word, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

_BAR, _TALL = 4, 16  # px


def spark_svg(counts: Sequence[int], title: str) -> str:
    """Return counts as a small SVG element; `title` has no markup in it."""
    most = max(counts, default=0) or 1
    heights = [max(1, round(count * _TALL / most)) if count else 0 for count in counts]
    data = "".join(f"M{x * _BAR} {_TALL - h}h3v{h}h-3z" for x, h in enumerate(heights) if h)
    size = f'width="{len(counts) * _BAR}" height="{_TALL}"'
    return f'<svg role="img" class="spark" aria-label="{title}" {size}><title>{title}</title><path d="{data}"/></svg>'
