"""Rules of the field, each once."""
