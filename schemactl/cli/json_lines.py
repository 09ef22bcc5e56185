"""Questions on standard input: one JSON object a line in, one a line out, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NoReturn, TextIO

from schemactl.core.errors import SchemactlError
from schemactl.formats import InvalidInput

Request = dict[str, Any]
Answer = dict[str, Any]

_CHUNK_BYTES = 1 << 20
_BATCH_LINES = 200
"""How much is read ahead where more has arrived."""


def answer_lines(
    lines: BinaryIO,
    out: TextIO,
    answer: Callable[[Request], Answer],
    *,
    ahead: Callable[[Sequence[Request]], None] | None = None,
) -> bool:
    """Write the answer of every one of `lines`, or what is wrong with it, to `out`; return whether all were read.

    Answers as soon as there is a line: who asks may wait for the answer before asking again.

    Args:
        lines: the questions, one a line; blank lines are left out.
        out: takes the answers.
        answer: may raise InvalidInput or SchemactlError; that becomes the line's `error`.
        ahead: is shown the questions that have arrived together, before the first of them is answered.
    """
    complete = True
    for batch in _batches(lines):
        requests = [_request(line) for line in batch]
        if ahead is not None:
            ahead([request for request in requests if isinstance(request, dict)])
        for request in requests:
            id_ = request.get("id") if isinstance(request, dict) else None
            try:
                if isinstance(request, InvalidInput):
                    raise request
                answered = answer(request)
            except (InvalidInput, SchemactlError) as error:
                complete = False
                answered = {"error": str(error)}
            out.write(json.dumps({"id": id_, **answered}, ensure_ascii=False) + "\n")
        out.flush()
    return complete


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yield the lines that have arrived, as they arrive; blank ones left out."""
    # In pieces: a long line that grows by each of them would be copied as often.
    begun: list[bytes] = []
    while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]  # buffered streams have it
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*begun, lines[0]])
            begun = []
        begun.append(rest)
        for start in range(0, len(lines), _BATCH_LINES):
            yield [line for line in lines[start : start + _BATCH_LINES] if line.strip()]
    if (last := b"".join(begun)).strip():
        yield [last]


def _no_json(word: str) -> NoReturn:
    """Refuse NaN and infinities, which Python reads and would write into the answer."""
    raise ValueError(f"{word} is no number there")


def _request(line: bytes) -> Request | InvalidInput:
    try:
        request = json.loads(line, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        return InvalidInput(f"the line is not JSON: {error}")
    return request if isinstance(request, dict) else InvalidInput("the line is not a JSON object")


def options_of(request: Request) -> dict[str, Any]:
    """Return the options of a line.

    Raises:
        InvalidInput: it has something else there.
    """
    given = request.get("options") or {}
    if not isinstance(given, dict):
        raise InvalidInput("`options` is not an object")
    return given


def recursion_depth(options: dict[str, Any], *, default: int) -> int:
    """Return the maximum recursion depth of a record.

    Raises:
        InvalidInput: `options` has no number there that Java has.
    """
    try:
        # Spark's options are texts; numbers are taken as well.
        given = options.get("recursiveFieldMaxDepth", default)
        depth = None if isinstance(given, float | bool) else int(given)
    except (TypeError, ValueError):
        depth = None
    if depth is None or not -(1 << 31) <= depth < 1 << 31:
        raise InvalidInput("`options.recursiveFieldMaxDepth` is not a number of 32 bits")
    return depth
