"""The state of a job while its files are still being written."""

AFTER_S = 5.0
"""Default time without progress after which a group of ranks counts as stuck [s]."""
