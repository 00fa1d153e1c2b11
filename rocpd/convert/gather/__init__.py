"""One rank as tracks, slices, instants, counters and flows, for the writers of traces."""
