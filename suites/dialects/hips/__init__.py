"""The sentences that hips documents about its own interface for custom Functions."""
