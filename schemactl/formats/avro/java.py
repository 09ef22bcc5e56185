"""The exceptions of Java's Avro."""

from __future__ import annotations


class JavaException(Exception):
    """Java's Avro throws `exception`, by its simple class name, with `message` (empty where it is the JVM's own)."""

    def __init__(self, exception: str, message: str = "") -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message


def stack_overflow() -> JavaException:
    """Return what Java throws where its recursion does not end, or not soon enough."""
    return JavaException("StackOverflowError")


def out_of_memory() -> JavaException:
    """Return what Java throws where it keeps more than its heap holds."""
    return JavaException("OutOfMemoryError", "Java heap space")


def no_branch() -> JavaException:
    """Return what Java throws where it takes the first branch of a union that has none."""
    return JavaException("IndexOutOfBoundsException", "Index 0 out of bounds for length 0")
