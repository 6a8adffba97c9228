"""The sentences that MindSpore documents about its own interface for custom Functions."""
