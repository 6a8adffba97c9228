"""How the suite is run: pytest plugin, outcomes, reports, command line."""
