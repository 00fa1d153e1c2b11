"""One way to read the columns of a rank."""
