"""The package as a library: in programs with threads, forks and a SQLite of their own, and on systems like macOS."""
