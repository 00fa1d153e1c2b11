"""The engine: paths in, one read-only database out. Stages: source, open, identify, attach, unify, align, query."""
