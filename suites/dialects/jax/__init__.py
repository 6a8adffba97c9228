"""What jax says of its own interface for custom Functions."""
