"""Facts that are derived of a rank or a job, once, as columns with units: every surface and SQL read them from here."""
