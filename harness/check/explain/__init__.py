"""What is said of a failure: its cause, what it is right with, and the failures that it hides."""
