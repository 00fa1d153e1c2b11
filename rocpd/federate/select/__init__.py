"""What of a job counts: windows, filters, and the common time line."""
