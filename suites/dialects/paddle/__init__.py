"""The sentences that Paddle documents about its own interface for custom Functions."""
