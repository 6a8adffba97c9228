"""How precise a user's Function is: in half precision, at extreme values, beside built-in operations."""
