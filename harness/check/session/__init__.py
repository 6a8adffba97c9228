"""The processes of a check, and what is shown while they run."""
