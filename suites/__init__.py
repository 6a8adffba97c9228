"""What is checked. Files with an underscore hold helpers that several test files share."""
