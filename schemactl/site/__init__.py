"""A static catalogue of the approved topics: pages that need no server and load nothing from elsewhere."""
