"""`rocpd top`: a job while it runs, by the analyses that read it when it is over."""
