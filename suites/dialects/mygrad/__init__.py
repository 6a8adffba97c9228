"""The sentences that mygrad documents about its own interface for custom Functions."""
