"""Summaries and analyses: one file each, listed in `registry.SUMMARIES`, exact over all ranks."""
