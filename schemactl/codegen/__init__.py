"""The text of generated packages."""
