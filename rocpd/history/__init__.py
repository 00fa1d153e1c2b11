"""Many runs of a job: since when it is as fast as it is. Runs are measured by `compare`; traces are never read here."""
