"""What everybody may name: errors, options, outputs, the identity of files. Knows nothing of traces."""
