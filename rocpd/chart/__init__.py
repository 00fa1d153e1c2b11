"""Charts as data, and as shapes, SVG and text. Knows values, units and names, but no ranks, kernels or files."""
