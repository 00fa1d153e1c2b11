"""Files of a job for others: the same numbers, with other names in place of places and users of the job."""
