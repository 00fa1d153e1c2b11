"""Damaged files against every command: families of damage, the commands, and a harness that runs one on the other."""
