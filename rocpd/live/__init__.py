"""What can be known of a job while its files are still being written."""
