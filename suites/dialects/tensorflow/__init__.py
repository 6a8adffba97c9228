"""What tensorflow says of its own interface for custom Functions."""
