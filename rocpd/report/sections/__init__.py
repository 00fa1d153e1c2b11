"""One section, one file: a function that takes a `Material` and yields blocks, none where there is no data."""
