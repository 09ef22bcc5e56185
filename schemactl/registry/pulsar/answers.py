"""What a broker's answers say: its words, the exception behind them, and whether trying again can help."""

from __future__ import annotations

import html
import json
import re
from typing import Any, NamedTuple, NoReturn

MAX_WORDS = 2_000
"""How many characters of a broker's words are kept: with the definitions that it quotes they can be megabytes."""

MAX_REFUSAL_BYTES = 1 << 20
"""How much of the body of a refusal is read."""

TOO_MANY_REQUESTS = 429
_CONFLICT, _PRECONDITION_FAILED, _SERVER_ERROR = 409, 412, 500
_LARGEST_LONG = (1 << 63) - 1
_GATEWAY = frozenset({502, 503, 504})

_UNEXPECTED = "An unexpected error occurred in the server"
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STACKTRACE = re.compile(r"Stacktrace:\s*([\w.$]+)")
_MESSAGE_CELL = re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)(?:</td>|\Z)", re.DOTALL)
_TRANSIENT_EXCEPTION = re.compile(
    r"Timeout|MetadataStore|ManagedLedger|BKException|Connect|AlreadyClosed|NotLeader"
)
_NO_BOOKIES = "Not enough non-faulty bookies"
_NO_BOOKIE = "Bookie handle is not available"
"""What brokers say of a ledger whose bookie has not come back yet after a restart."""


class Reply(NamedTuple):
    """An answer over HTTP; of one that is fine, reason and content type are not kept.

    `retry_after_s` is what the header of that name says, if it says seconds.
    """

    status: int
    reason: str = ""
    content_type: str = ""
    body: bytes = b""
    retry_after_s: float | None = None

    @property
    def fine(self) -> bool:
        """The request was carried out."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body's value; None where it is empty, as Pulsar answers for a policy that is not set.

        Raises:
            ValueError: the body is not JSON, nests too deep, or holds what is no text in UTF-8.
        """
        if not self.body:
            return None
        try:
            value = json.loads(self.body, parse_constant=_no_number)
            if _HALF_A_PAIR.search(self.body):
                # Half a surrogate pair can be escaped in JSON, and be written down nowhere.
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except MemoryError:
            raise ValueError("it does not fit into memory") from None
        return value


def fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value has that shape, as far as it is told.

    A shape is a type; `[shape]`, an array of such; `{key: shape}`, an object with such members, where a missing one counts
    as null; or a tuple of shapes, any of them.
    """
    match shape:
        case list():
            return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
        case dict():
            return isinstance(value, dict) and all(fits(value.get(key), of) for key, of in shape.items())
        case tuple():
            return any(fits(value, of) for of in shape)
        case _ if shape is int:
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_LONG
        case _:
            return isinstance(value, shape)


def words(reply: Reply) -> str:
    """What the broker says, at most `MAX_WORDS` long.

    That is the reason in JSON, else the message of Jetty's page, which is JSON or HTML, else the reason phrase.
    """
    text = _reason(reply) or reply.reason
    if _UNEXPECTED in text and "Message:" in text:
        text = _message(text)
    text = text.strip()
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]} ..."


def _message(text: str) -> str:
    """What stands between "Message:" and a line that begins with "Stacktrace:", in one pass."""
    lines = text.partition("Message:")[2].split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.lstrip().startswith("Stacktrace:")), None)
    return "\n".join(lines[:end])


def exception(reply: Reply) -> str:
    """The simple name of the Java exception behind an unexpected error; "" for any other answer."""
    found = _STACKTRACE.search(_reason(reply))
    return found[1].rpartition(".")[2].rpartition("$")[2] if found else ""


def is_concurrent_modification(reply: Reply) -> bool:
    """Somebody else wrote at the same time, so nothing was written. An upload's other 409, incompatible, has no reason."""
    return (
        reply.status == _CONFLICT and b'"reason"' in reply.body and words(reply) == "Concurrent modification"
    )


def is_too_big(reply: Reply, size: int) -> bool:
    """An upload of `size` bytes did not fit into a ledger's entry: the broker blames its bookies."""
    return reply.status >= _SERVER_ERROR and size > 4_000_000 and _NO_BOOKIES in words(reply)


def can_succeed_later(reply: Reply, sent_bytes: int = 0) -> bool:
    """Whether the very same request, with a body of `sent_bytes`, may be answered otherwise in a moment.

    So it is when the topic's bundle has no owner just now (412), when somebody was faster (409), for a server that is busy
    or a gateway without one, and for a 500 that is either not Pulsar's own or tells of its storage, which is slower to be
    ready than a broker that starts. Another 500 of Pulsar's is how it refuses.
    """
    if reply.status == _SERVER_ERROR and _NO_BOOKIES in words(reply):
        return not is_too_big(reply, sent_bytes)
    if reply.status == _SERVER_ERROR and _NO_BOOKIE in words(reply):
        return True
    if reply.status == _SERVER_ERROR:
        return _UNEXPECTED not in _reason(reply) or _TRANSIENT_EXCEPTION.search(exception(reply)) is not None
    if reply.status in _GATEWAY or reply.status in (TOO_MANY_REQUESTS, _PRECONDITION_FAILED):
        return True
    return is_concurrent_modification(reply)


def _reason(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if _is_json(reply):
        return _json_reason(text)
    if "html" in reply.content_type:
        cell = _MESSAGE_CELL.search(text)
        return html.unescape(cell[1]) if cell else ""
    return text


def _json_reason(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        # Cut off where reading stopped; what was read of the reason is still worth showing.
        start = re.search(r'"(?:reason|message)"\s*:\s*"', text)
        return text[start.end() :].replace("\\n", "\n").replace('\\"', '"') if start else ""
    if not isinstance(value, dict):
        return ""
    # Pulsar's own answers give a reason; a page of Jetty's as JSON a message, escaped as if it were still HTML.
    reason, message = value.get("reason"), value.get("message")
    if isinstance(reason, str):
        return reason
    return html.unescape(message) if isinstance(message, str) else ""


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _is_json(reply: Reply) -> bool:
    return "json" in reply.content_type
