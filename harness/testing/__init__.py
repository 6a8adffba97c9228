"""What a test of the suite uses: its subject, examples, comparisons and scenarios."""
