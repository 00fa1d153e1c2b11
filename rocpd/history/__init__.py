"""Many runs of a job: when its speed changed. Runs are measured by `compare`; no traces are read here."""
