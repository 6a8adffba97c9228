"""What PyTorch documents about custom Functions, in its own interface."""
