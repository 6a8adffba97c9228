"""The sentences that several frameworks document, each with one test, and what their dialects generate alike."""
