"""Planted faults of dialects: deliberate bugs of other implementations than PyTorch, one of these a file."""
