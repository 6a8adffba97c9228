"""What paddle says of its own interface for custom Functions."""
