"""Read the responses of a broker within limits of size and time, and interpret its errors."""

from __future__ import annotations

import html
import json
import math
import re
import socket
import sys
import time
from contextlib import suppress
from threading import local
from types import UnionType
from typing import Any, Final, NamedTuple, TypeVar

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from schemactl.core.errors import RegistryError
from schemactl.core.json_values import reject_constant
from schemactl.core.policies import CompatibilityStrategy

MAX_ANSWER_BYTES: Final = 64 << 20
"""The largest response, both compressed and decompressed."""

MAX_MESSAGE = 2_000
"""The maximum number of characters of a broker's message, which can quote definitions of megabytes."""

MAX_ERROR_BYTES = 1 << 20
"""The maximum number of bytes of the body of an error."""

LONGEST_VERSION = 64
"""The maximum number of characters of a broker's release."""

TOO_MANY_REQUESTS = 429

_MAX_LONG: Final = (1 << 63) - 1

_ENCODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_RETRY: Final = urllib3.Retry(retry_after_max=1 << 40)

_UNAUTHORIZED, _FORBIDDEN, _CONFLICT, _PRECONDITION_FAILED, _SERVER_ERROR = 401, 403, 409, 412, 500
_GATEWAY = frozenset({502, 503, 504})

_UNEXPECTED = "An unexpected error occurred in the server"

_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

_STACKTRACE = re.compile(r"Stacktrace:\s*([\w.$]+)")

_MESSAGE_CELL = re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)(?:</td>|\Z)", re.DOTALL)

_TRANSIENT_EXCEPTION = re.compile(r"Timeout|MetadataStore|ManagedLedger|BKException|Connect|AlreadyClosed|NotLeader")

_NO_BOOKIES = "Not enough non-faulty bookies"

_NO_BOOKIE = "Bookie handle is not available"
"""The error of a ledger whose bookie is still restarting."""


_Error = TypeVar("_Error", bound=Exception)


class ResponseLimitError(urllib3.exceptions.HTTPError):
    """A response exceeds a limit, so a retry would not help. The text is a predicate: `has more than 10 bytes`."""


class Reply(NamedTuple):
    """A reply over HTTP.

    Attributes:
        reason: the reason phrase of an error.
        content_type: the content type of an error.
        retry_after_s: the requested delay in the header `Retry-After`.
        redirected_to: the host that sent the reply if the cluster redirected to it, or "".
        has_schema_version: whether a message in the reply has a schema version.
    """

    status: int
    reason: str = ""
    content_type: str = ""
    body: bytes = b""
    retry_after_s: float | None = None
    redirected_to: str = ""
    has_schema_version: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the JSON value of the body, or None for an empty body, which is Pulsar's answer for an unset policy.

        Raises:
            ValueError: if the body is not JSON, is nested too deeply, or contains a lone surrogate.
        """
        if not self.body:
            return None
        try:
            value = json.loads(self.body, parse_constant=reject_constant)
            if _LONE_SURROGATE.search(self.body):
                # JSON can escape a lone surrogate, but no file or terminal can represent it.
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except MemoryError:
            raise ValueError("it does not fit into memory") from None
        return value


def has_shape(value: Any, shape: Any) -> bool:
    """Return whether a JSON value has a shape.

    A shape is a type or a union of types; `[shape]` for a list of such values; `{key: shape}` for an object with such members,
    where a missing member counts as null and `*` means every member; or a tuple of alternative shapes.
    """
    if isinstance(shape, (tuple, UnionType)):
        alternatives = shape if isinstance(shape, tuple) else shape.__args__
        return any(has_shape(value, alternative) for alternative in alternatives)
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(member, shape[0]) for member in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        members = dict.fromkeys(value, shape["*"]) if "*" in shape else shape
        return all(has_shape(value.get(key), member_shape) for key, member_shape in members.items())
    if shape is int:
        # A boolean is an int in Python, but not in JSON.
        return type(value) is int and abs(value) <= _MAX_LONG
    return isinstance(value, shape)


def audit_request(method: str, url: str, outcome: str, started_s: float, attempt: int = 1) -> None:
    """Raise the audit event `schemactl.request`, which `--debug` prints.

    Args:
        method: the HTTP method.
        url: the URL without secrets.
        outcome: the status, or the reason why there is no response.
        started_s: the start of the request, by the monotonic clock.
        attempt: the number of the attempt, from 1.
    """
    sys.audit("schemactl.request", method, url, outcome, time.monotonic() - started_s, attempt)


def error_message(reply: Reply) -> str:
    """Return the broker's message, at most `MAX_MESSAGE` characters.

    This is the reason in JSON, the message of Jetty's page (JSON or HTML), or the reason phrase.
    """
    text = _find_reason(reply) or reply.reason
    if _UNEXPECTED in text and "Message:" in text:
        # The message ends before a line that begins with "Stacktrace:".
        lines = text.partition("Message:")[2].split("\n")
        ends = (index for index, line in enumerate(lines) if index and line.lstrip().startswith("Stacktrace:"))
        text = "\n".join(lines[: next(ends, None)])
    text = text.strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."


def _find_reason(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if "json" in reply.content_type:
        return _find_json_reason(text)
    if "html" in reply.content_type:
        cell = _MESSAGE_CELL.search(text)
        return html.unescape(cell[1]) if cell else ""
    return text


def _find_json_reason(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # The body was cut off, so show the beginning of the reason.
        start = re.search(r'"(?:reason|message)"\s*:\s*"', text)
        return text[start.end() :].replace("\\n", "\n").replace('\\"', '"') if start else ""
    if not isinstance(value, dict):
        return ""
    # Pulsar sends a reason; Jetty's pages in JSON have a message, which is escaped as in HTML.
    reason, message = value.get("reason"), value.get("message")
    if isinstance(reason, str):
        return reason
    return html.unescape(message) if isinstance(message, str) else ""


def find_exception(reply: Reply) -> str:
    """Return the simple name of the Java exception of an unexpected error, or "" for any other reply."""
    match = _STACKTRACE.search(_find_reason(reply))
    return match[1].rpartition(".")[2].rpartition("$")[2] if match else ""


def can_succeed_later(reply: Reply, sent_bytes: int = 0) -> bool:
    """Return whether a retry of the request, with a body of `sent_bytes`, may succeed soon.

    This is so if the topic's bundle has no owner yet (412), another client wrote at the same time (409), the server is busy,
    a gateway has no server, or a 500 comes from a proxy or from Pulsar's storage, which starts more slowly than a broker. Any
    other 500 of Pulsar is final.
    """
    if reply.status == _SERVER_ERROR:
        message = error_message(reply)
        if _NO_BOOKIES in message:
            return not is_too_big(reply, sent_bytes)
        if _NO_BOOKIE in message:
            return True
        return _UNEXPECTED not in _find_reason(reply) or _TRANSIENT_EXCEPTION.search(find_exception(reply)) is not None
    if reply.status in _GATEWAY or reply.status in (TOO_MANY_REQUESTS, _PRECONDITION_FAILED):
        return True
    return is_concurrent_modification(reply)


def is_concurrent_modification(reply: Reply) -> bool:
    """Return whether a write failed because of a concurrent write.

    The other 409 of an upload, incompatible, has no reason in JSON.
    """
    return reply.status == _CONFLICT and b'"reason"' in reply.body and error_message(reply) == "Concurrent modification"


def is_unauthenticated(reply: Reply, *, has_expired: bool = False) -> bool:
    """Return whether the broker, or a gateway before it, rejects the credentials; `has_expired` is about their token.

    A role without permission also gets a 401 or 403 of Pulsar, but with a reason in JSON. Gateways answer either for an expired token.
    """
    is_rejected = reply.status == _UNAUTHORIZED or (reply.status == _FORBIDDEN and has_expired)
    return is_rejected and b'"reason"' not in reply.body


def is_too_big(reply: Reply, size: int) -> bool:
    """Return whether an upload of `size` bytes was too big for a ledger entry, which brokers report as missing bookies."""
    return reply.status >= _SERVER_ERROR and size > 4_000_000 and _NO_BOOKIES in error_message(reply)


def retry_after_s(header: str) -> float | None:
    """Return the delay in a `Retry-After` header, a number or a date, or None if it is neither."""
    try:
        return float(_RETRY.parse_retry_after(header))
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        return None


def parse_strategy(text: str | None) -> CompatibilityStrategy:
    """Return the strategy with this name, or UNDEFINED for None; raise RegistryError for an unknown name."""
    if text is None:
        return CompatibilityStrategy.UNDEFINED
    try:
        return CompatibilityStrategy(text)
    except ValueError:
        raise RegistryError(
            f"the registry has a compatibility strategy that this version does not know: {text[:60]!r}",
            fix="upgrade schemactl",
        ) from None


class _WatchedConnection(HTTPConnection):
    """A connection that tells the request of its thread which socket it waits on, so that another thread can close it."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        if current.wait:
            current.wait.begin(self.sock)
        return super().getresponse()


class _WatchedTLSConnection(_WatchedConnection, HTTPSConnection):
    pass


class AnswerWait:
    """The wait of a thread for a response, which ends when another thread closes the socket.

    urllib3 limits the time of each read, and a server that sends a byte from time to time would never exceed that.

    Args:
        limit_s: the time limit from the end of a request to the end of the response.

    Attributes:
        is_over: whether the time was used up.
    """

    __slots__ = ("_limit_s", "_socket", "_until_s", "is_over")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._socket: socket.socket | None = None
        self._until_s = math.inf
        self.is_over = False

    def begin(self, connection: socket.socket | None) -> None:
        """Count the time of a response from now on."""
        self._socket, self._until_s, self.is_over = connection, time.monotonic() + self._limit_s, False

    def end(self) -> None:
        """Count no longer; raise ResponseLimitError if the time was used up, so that the response is not complete."""
        self._socket, self._until_s = None, math.inf
        if self.is_over:
            raise ResponseLimitError(f"takes longer than {self._limit_s:.0f} s")

    def explain(self, error: _Error) -> _Error | ResponseLimitError:
        """Return the cause of an error while waiting: the time limit, or the error itself."""
        try:
            self.end()
        except ResponseLimitError as limit:
            return limit
        return error

    def close_if_over(self, now_s: float) -> None:
        """Close the socket if the time is used up."""
        if now_s >= self._until_s:
            self.is_over = True
            self.close()

    def close(self) -> None:
        """Close the socket, so that a read in another thread ends."""
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                # The method of an SSLSocket would take its state away from the thread that reads.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _ThreadState(local):
    """The state of the calling thread: its wait, or None while no request watches it."""

    wait: AnswerWait | None = None


current = _ThreadState()


def open_pool(manager: urllib3.PoolManager, url: str) -> urllib3.HTTPConnectionPool:
    """Return the connections to the server of `url`, on which no response takes longer than the `AnswerWait` of its request allows."""
    pool = manager.connection_from_url(url)
    pool.ConnectionCls = _WatchedTLSConnection if pool.scheme == "https" else _WatchedConnection
    return pool


def read_body(response: urllib3.BaseHTTPResponse, *, max_bytes: int = MAX_ANSWER_BYTES, cut: bool = False) -> bytes:
    """Return the decompressed body of an unread response, and release its connection, ready for the next request.

    With `cut`, a longer body is cut off after `max_bytes`, and the connection is closed.

    Raises:
        ResponseLimitError: if the body has more than `max_bytes`.
        HTTPError: if the body cannot be read, or has an unrequested compression.
    """
    is_complete = False
    try:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise urllib3.exceptions.DecodeError("the response has a compression that was not requested")
        size = getattr(response, "length_remaining", None)
        # With the announced size, urllib3 does not try another read at the end.
        amount = max_bytes + 1 if encoding or size is None else min(size, max_bytes + 1)
        if size == 0:
            # urllib3 ignores a read of 0 bytes, and leaves the response open until it is deleted. A read of more bytes ends an empty
            # response, but waits for bytes after other headers, such as `Transfer-Encoding: chunked` of a 204.
            amount = int(not response.chunked and response.headers.get("Content-Length", "0") == "0")
        body = response.read(amount, decode_content=True)
        is_complete = len(body) <= max_bytes
    finally:
        if not is_complete or not response.closed:
            # The rest of the body must not be read as the response to the next request, which another thread can send at once. After
            # an open response, http.client sends that request, and takes no response to it (ResponseNotReady).
            response.close()
        response.release_conn()
    if not is_complete and not cut:
        raise ResponseLimitError(f"has more than {max_bytes:,} bytes")
    return body[:max_bytes]
