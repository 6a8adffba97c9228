"""Processes: how they are started, limited and watched, and how they end."""
