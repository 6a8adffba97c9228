"""What mygrad says of its own interface for custom Functions."""
