"""Examples: whole repositories to play with."""
