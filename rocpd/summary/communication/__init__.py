"""Ranks against each other: collectives, who waits for whom, and the verdict."""
