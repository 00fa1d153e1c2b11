"""Runs statements and work on ranks: threads, processes, a cluster, one attached connection. Chooses no strategy."""
