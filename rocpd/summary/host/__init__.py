"""The work of the host: calls, launches, graphs, stacks, operators of PyTorch."""
