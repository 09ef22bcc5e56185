"""Answer requests on JSON lines, each as soon as it arrives."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO, get_args

from schemactl.core.errors import SchemactlError
from schemactl.core.json_values import reject_constant
from schemactl.core.project import Nanoseconds

if TYPE_CHECKING:
    from schemactl.formats.json_definitions import InvalidInput


Request = dict[str, Any]
Answer = dict[str, Any]

INTERNAL_ERROR: Final = "internal error"
"""The start of the `error` of a line that failed because of a mistake of the program."""

_CHUNK_BYTES: Final = 1 << 20

_MAX_BATCH_LINES: Final = 200
"""The maximum number of lines that are parsed before the first of them is answered."""


def answer_standard_input(
    answer: Callable[[Request], Answer], *, ahead: Callable[[Sequence[Request]], None] | None = None
) -> int:
    """Answer the lines on standard input, as `answer_lines` does; return 1 if one has an error, else 0."""
    return 0 if answer_lines(sys.stdin.buffer, sys.stdout, answer, ahead=ahead) else 1


def answer_lines(
    lines: BinaryIO,
    out: TextIO,
    answer: Callable[[Request], Answer],
    *,
    ahead: Callable[[Sequence[Request]], None] | None = None,
) -> bool:
    """Write the answer to each line, or its error, to `out`; return whether no line had an error.

    Each line is answered as soon as it arrives, because a client may wait for the answer before it sends the next line.

    Args:
        lines: the requests, one a line; blank lines are skipped.
        out: the output for the answers.
        answer: returns the answer; any exception becomes the `error` of the line.
        ahead: gets the requests that have arrived together, before the first of them is answered.
    """
    from schemactl.formats.json_definitions import InvalidInput

    is_complete = True
    for batch in _read_batches(lines):
        requests = [_parse_request(line) for line in batch]
        if ahead is not None:
            # An error is raised again when its line is answered.
            with suppress(Exception):
                ahead([request for request in requests if isinstance(request, dict)])
        for request in requests:
            response: Answer = {}
            if isinstance(request, InvalidInput):
                id_, problem = None, str(request)
            else:
                id_ = request.get("id")
                try:
                    response, problem = answer(request), ""
                except (InvalidInput, SchemactlError) as error:
                    problem = str(error)
                except RecursionError:
                    problem = "it is nested too deeply"
                except Exception as error:  # noqa: BLE001  a mistake of the program is the error of one line, and not the loss of the others
                    problem = f"{INTERNAL_ERROR}: {type(error).__name__}: {error}"
            if problem:
                is_complete, response = False, {"error": problem}
            text = json.dumps({"id": id_, **response}, ensure_ascii=False)
            try:
                text.encode()
            except UnicodeEncodeError:
                # UTF-8 has no lone surrogates.
                text = json.dumps({"id": id_, **response})
            out.write(text + "\n")
        out.flush()
    return is_complete


def _read_batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield lines as they arrive, without blank ones."""
    # The chunks of a long line are joined only once, at its end.
    chunks: list[bytes] = []
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # buffered streams have it
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*chunks, lines[0]])
            chunks = []
        chunks.append(rest)
        for start in range(0, len(lines), _MAX_BATCH_LINES):
            yield [line for line in lines[start : start + _MAX_BATCH_LINES] if line.strip()]
    if (last := b"".join(chunks)).strip():
        yield [last]


def _parse_request(line: bytes) -> Request | InvalidInput:
    from schemactl.formats.json_definitions import InvalidInput

    try:
        request = json.loads(line, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        return InvalidInput(f"the line is not JSON: {error}")
    return request if isinstance(request, dict) else InvalidInput("the line is not a JSON object")


def read_options(request: Request) -> dict[str, Any]:
    """Return the `options` of a line.

    Raises:
        InvalidInput: if they are not an object.
    """
    from schemactl.formats.json_definitions import InvalidInput

    options = request.get("options") or {}
    if not isinstance(options, dict):
        raise InvalidInput("`options` is not an object")
    return options


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        InvalidInput: if the option is not an `int` of Java.
    """
    from schemactl.formats.json_definitions import InvalidInput

    try:
        # Spark's options are texts; numbers are accepted as well.
        value = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(value, float | bool) else int(value)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise InvalidInput("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth


def parse_nanoseconds(options: dict[str, Any]) -> Nanoseconds:
    """Return the columns of types with nanoseconds.

    Raises:
        InvalidInput: if the option has another value.
    """
    from schemactl.formats.json_definitions import InvalidInput

    for value in get_args(Nanoseconds):
        if options.get("nanoseconds", "truncated") == value:
            choice: Nanoseconds = value
            return choice
    raise InvalidInput(f"`options.nanoseconds` is not {' or '.join(get_args(Nanoseconds))}")
