"""What other implementations say of their own interface for custom Functions, one a file."""
