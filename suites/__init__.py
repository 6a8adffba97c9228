"""What is checked: tests, nothing else."""
