"""What a result means to the author of a Function, and how it is shown."""
