"""The calls that a program makes of its custom Functions, checked where they are made."""
