"""The sentences that PyTorch documents about its own interface for custom Functions."""
