"""Communication between ranks: kernels that belong together, arrivals of members, offsets between clocks."""
