"""Memory held, its allocation, and copies."""
