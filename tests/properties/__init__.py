"""Laws that hold for any trace."""
