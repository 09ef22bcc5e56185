"""What Java's Avro throws where it gives no answer."""

from __future__ import annotations


class Thrown(Exception):
    """Java's Avro throws `exception`, by its simple class name, with `message` (empty where it is the JVM's own)."""

    def __init__(self, exception: str, message: str = "") -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message


def stack_overflow() -> Thrown:
    """Java's recursion does not end, or not soon enough."""
    return Thrown("StackOverflowError")


def out_of_memory() -> Thrown:
    """Java keeps more than its heap holds."""
    return Thrown("OutOfMemoryError", "Java heap space")


def no_branch() -> Thrown:
    """Java takes the first branch of a union that has none."""
    return Thrown("IndexOutOfBoundsException", "Index 0 out of bounds for length 0")
