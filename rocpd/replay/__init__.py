"""The job as a graph of who waits for whom, replayed with changes: what a cause costs, what a change gains."""
