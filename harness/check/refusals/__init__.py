"""What a user's Function takes and refuses, and which exceptions are mistakes."""
