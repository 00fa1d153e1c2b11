"""Memory that is held, who allocates it, and copies."""
