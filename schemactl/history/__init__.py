"""Git -> Catalog: which schemas were approved, in which order, by which commit."""
