"""The modules of this folder that have not moved yet."""
