"""One writer per trace format."""
