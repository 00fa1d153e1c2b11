"""`rocpd top`: a job while it runs, by the same analyses as afterwards."""
