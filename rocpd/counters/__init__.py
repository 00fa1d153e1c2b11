"""The meaning of hardware counters: formulas, metrics of each architecture, constants of a GPU. Reads no database."""
