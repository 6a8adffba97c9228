"""Reproducers: standalone scripts that show a failure."""
