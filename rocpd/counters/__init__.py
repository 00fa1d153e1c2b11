"""What hardware counters mean: formulas, metrics of each architecture, constants of a GPU. Reads no database."""
