"""What is checked: tests, and in files with an underscore the words that they share."""
