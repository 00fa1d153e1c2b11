"""Turns a statement into steps: what every rank runs, what is gathered, what runs over that. Never runs a statement."""
