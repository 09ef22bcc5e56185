"""Differences between two schemas, catalogs or revisions, and the readers that they break."""
