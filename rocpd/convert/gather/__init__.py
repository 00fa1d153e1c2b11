"""One rank as tracks, slices, instants, counters and flows: the model that trace writers consume."""
