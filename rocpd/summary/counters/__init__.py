"""Hardware counters, metrics that are calculated from them, and sampled values."""
