"""Owns what is a marker: an event of the user (roctx), a range or a mark, known by the category of the event.

rocprofiler-sdk writes `MARKER_CORE_RANGE_API`, rocprofiler-systems `rocm_marker_api`. The view `markers` holds the
same patterns, which a test compares: stored views can't ask Python.
"""

from __future__ import annotations

MARKER_PREFIXES = ("MARKER_", "rocm_marker")
"""What categories of markers start with, in these letters."""


def is_marker(category: str | None) -> bool:
    """Whether events of this category are markers.

    >>> is_marker("MARKER_CORE_RANGE_API"), is_marker("rocm_marker_api"), is_marker("HIP_RUNTIME_API"), is_marker(None)
    (True, True, False, False)
    """
    return category is not None and category.startswith(MARKER_PREFIXES)


def marker_categories(strings: str = "rocpd_string") -> str:
    """Return the SELECT of the `category_id`s of markers.

    Args:
        strings: the rank's table of strings, quoted where it must be.

    >>> marker_categories()
    "SELECT id FROM rocpd_string WHERE string GLOB 'MARKER_*' OR string GLOB 'rocm_marker*'"
    """
    patterns = " OR ".join(f"string GLOB '{prefix}*'" for prefix in MARKER_PREFIXES)
    return f"SELECT id FROM {strings} WHERE {patterns}"
