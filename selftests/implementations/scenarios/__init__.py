"""Scenarios: small uses and misuses of Functions, as the model and PyTorch both run them."""
