"""The properties of any custom Function."""
