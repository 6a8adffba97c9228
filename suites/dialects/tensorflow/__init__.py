"""The sentences that TensorFlow documents about its own interface for custom Functions."""
