"""What mlx says of its own interface for custom Functions."""
