"""What a user says of a Function, and the Function that the suite makes of it."""
