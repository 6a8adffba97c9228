"""Everything that shows a report to a person."""
