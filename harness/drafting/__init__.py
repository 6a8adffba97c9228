"""Declarations that nobody wrote: drafted from calls that a program makes, and from signatures."""
