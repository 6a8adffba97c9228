"""What a run checks: the build of the implementation, what is imported, and digests of the sources."""
