"""Finds files, opens them read-only without leaving a trace, and identifies their ranks. Never reads events."""
