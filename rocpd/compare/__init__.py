"""Compares two jobs, or steps or ranks of one: is it slower, and why."""
