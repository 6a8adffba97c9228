"""What is found out about a user's Function before it is checked."""
