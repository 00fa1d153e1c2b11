"""Facts of a rank or a job, derived once, as columns with units: every surface and SQL read them from here."""
