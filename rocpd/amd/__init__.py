"""The Python interface that AMD's documents give their package, on top of our own: thin, and nothing else uses it."""
