"""A static catalogue of the approved topics: pages that need no server and ask nobody for anything."""
