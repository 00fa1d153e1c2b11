"""Benchmarks: ratios measured side by side in one run. They print, they never fail on a slow machine."""
