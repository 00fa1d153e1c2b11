"""Kernels and other events by name and kind: totals, spread, order."""
