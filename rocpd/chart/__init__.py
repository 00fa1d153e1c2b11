"""Charts as data, and as shapes, SVG and text. Knows values, units and names; nothing of ranks, kernels or files."""
