"""Where the time of GPUs goes, in steps and between them."""
