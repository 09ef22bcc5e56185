"""The approved history in Git: the approved schemas, in their order, with the commits that approved them."""
