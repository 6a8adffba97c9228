"""What MindSpore says of its own interface for custom Functions."""
