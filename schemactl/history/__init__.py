"""The approved history in Git: the approved schemas, in their order, with the commits that approved them.

The version number of a schema is its index in the list of distinct contents that its topic has had along the first-parent
history of the approved ref.
"""
