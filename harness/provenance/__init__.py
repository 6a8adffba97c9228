"""What a run rests on: the build of the implementation, the modules that it imports, and digests of the sources."""
