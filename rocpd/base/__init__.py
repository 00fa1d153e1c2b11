"""Names that everybody may use: errors, options, outputs, the identity of files. Knows nothing of traces."""
