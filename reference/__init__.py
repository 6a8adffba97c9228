"""What is right: the documented Functions, their NumPy references, oracles and bounds. Imports no framework."""
