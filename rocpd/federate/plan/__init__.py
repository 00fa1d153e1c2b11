"""How a statement runs over many ranks. Never runs one."""
