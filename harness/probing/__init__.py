"""What is found out before a run: mistakes of an adapter, and what a device takes."""
