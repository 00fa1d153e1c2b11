"""Hardware counters, metrics that are calculated from them, and values that were sampled."""
