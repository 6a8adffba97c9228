"""What mindspore says of its own interface for custom Functions."""
