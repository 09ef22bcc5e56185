"""The steps of a plan: one file for each kind, and their interface in `step.py`."""
