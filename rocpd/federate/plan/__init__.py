"""Turns a statement into steps: SELECTs for every rank, and SELECTs over the gathered rows. Never runs a statement."""
