"""Inside of kernels: samples of program counters, and what instrumentation measured."""
