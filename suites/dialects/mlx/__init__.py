"""The sentences that MLX documents about its own interface for custom Functions."""
