"""The state of a job while its files are still being written."""
