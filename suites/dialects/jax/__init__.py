"""The sentences that JAX documents about its own interface for custom Functions."""
