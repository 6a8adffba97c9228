"""What single implementations document in their own interface."""
