"""Summaries: one row per kernel, copy direction, function, marker or domain, exact over all ranks."""
