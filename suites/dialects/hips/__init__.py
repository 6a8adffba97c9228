"""What hips says of its own interface for custom Functions."""
