"""One task per rank, and their parts put together into outputs."""
