"""The vocabulary and the process functions that every room shares; imports nothing of the rest."""
