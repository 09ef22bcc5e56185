"""Python classes: the definition that a class has, and whether it fits the topic."""
