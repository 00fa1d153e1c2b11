"""Communication between ranks: which kernels belong together, when members came, how clocks are apart."""
