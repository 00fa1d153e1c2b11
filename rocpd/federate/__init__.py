"""Makes many files answer as one read-only database; `federation` puts `open`, `select`, `plan` and `run` together."""
