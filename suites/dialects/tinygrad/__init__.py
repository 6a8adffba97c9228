"""What tinygrad says of its own interface for custom Functions."""
