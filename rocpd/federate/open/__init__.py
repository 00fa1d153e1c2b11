"""Finding files, opening them without a trace, and identifying the ranks in them."""
