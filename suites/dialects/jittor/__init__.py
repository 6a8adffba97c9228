"""What jittor says of its own interface for custom Functions."""
