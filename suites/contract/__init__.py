"""The contract of ctx and engine, over generated Functions that every implementation can run."""
