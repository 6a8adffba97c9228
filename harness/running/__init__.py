"""How the suite is run: the pytest plugin, what it selects, its workers, and what it records."""
