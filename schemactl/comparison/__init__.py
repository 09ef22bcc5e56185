"""What differs between two schemas, catalogs or revisions, and whom it breaks."""
