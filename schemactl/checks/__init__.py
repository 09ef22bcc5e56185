"""Whether a change is allowed, and why not."""
