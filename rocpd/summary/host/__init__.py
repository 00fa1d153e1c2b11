"""What the host does: calls, launches, graphs, stacks, operators of PyTorch."""
