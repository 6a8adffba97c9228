"""What the plain call of a user's Function gives, and how far off rounding may put another call."""
