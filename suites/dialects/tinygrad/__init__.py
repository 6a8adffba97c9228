"""The sentences that tinygrad documents about its own interface for custom Functions."""
