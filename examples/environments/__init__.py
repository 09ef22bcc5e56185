"""A repository with three environments, and the way of a change through them."""
