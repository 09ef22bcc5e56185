"""Read the responses of a broker within limits of size and time, and interpret its errors."""

from __future__ import annotations

import html
import http.client
import io
import json
import re
import socket
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, NoReturn

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from schemactl.core.deadline import Worker
from schemactl.core.errors import RegistryError
from schemactl.core.policies import CompatibilityStrategy

MAX_ANSWER_BYTES: Final = 64 << 20
"""The largest response, both compressed and decompressed."""

ANSWER_WITHIN_S: Final = 60.0
"""The time limit from the end of a request to the end of the response."""

RESOLVED_WITHIN_S: Final = 10.0
"""The time limit for the resolution of a host's name."""

MAX_MESSAGE = 2_000
"""The most characters of a broker's message, which can quote definitions of megabytes."""

MAX_ERROR_BYTES = 1 << 20
"""The most bytes of the body of an error."""

LONGEST_VERSION = 64
"""The most characters of a broker's release."""

TOO_MANY_REQUESTS = 429

_CHUNK_BYTES: Final = 1 << 16
_HEAD_BYTES: Final = 1 << 20
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS
"""The `wbits` of zlib.decompressobj for a gzip or zlib header."""


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


class ResponseLimitError(urllib3.exceptions.HTTPError):
    """A response beyond a limit; a retry would not help."""


class _LimitError(OSError):
    """A limit exceeded while reading from a socket, below urllib3; see `limit_reached`."""


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
    def fine(self) -> bool:
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
            value = json.loads(self.body, parse_constant=_reject_constant)
            if _LONE_SURROGATE.search(self.body):
                # JSON can escape a lone surrogate, but no file or terminal can represent it.
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except MemoryError:
            raise ValueError("it does not fit into memory") from None
        return value


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
        text = _extract_message(text)
    text = text.strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."


def _extract_message(text: str) -> str:
    """Return the text between "Message:" and a line that begins with "Stacktrace:"."""
    lines = text.partition("Message:")[2].split("\n")
    end = next((index for index, line in enumerate(lines) if index and line.lstrip().startswith("Stacktrace:")), None)
    return "\n".join(lines[:end])


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
    except (ValueError, RecursionError, MemoryError):
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


def exception(reply: Reply) -> str:
    """Return the simple name of the Java exception of an unexpected error, or "" for any other reply."""
    match = _STACKTRACE.search(_find_reason(reply))
    return match[1].rpartition(".")[2].rpartition("$")[2] if match else ""


def can_succeed_later(reply: Reply, sent_bytes: int = 0) -> bool:
    """Return whether a retry of the request, with a body of `sent_bytes`, may succeed soon.

    This is so if the topic's bundle has no owner yet (412), another client wrote at the same time (409), the server is busy,
    a gateway has no server, or a 500 comes from a proxy or from Pulsar's storage, which starts more slowly than a broker. Any
    other 500 of Pulsar is final.
    """
    if reply.status == _SERVER_ERROR and _NO_BOOKIES in error_message(reply):
        return not is_too_big(reply, sent_bytes)
    if reply.status == _SERVER_ERROR and _NO_BOOKIE in error_message(reply):
        return True
    if reply.status == _SERVER_ERROR:
        return _UNEXPECTED not in _find_reason(reply) or _TRANSIENT_EXCEPTION.search(exception(reply)) is not None
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
    if header.isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # not a date, or a date without time zone
        return None


def strategy_named(text: str | None) -> CompatibilityStrategy:
    """Return the strategy with this name, or UNDEFINED for None; raise RegistryError for an unknown name."""
    try:
        return CompatibilityStrategy.UNDEFINED if text is None else CompatibilityStrategy(text)
    except ValueError:
        raise RegistryError(
            f"the registry has a compatibility strategy that this version does not know: {(text or '')[:60]!r}",
            fix="upgrade schemactl",
        ) from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def manager(**options: Any) -> urllib3.PoolManager:
    """Return a pool manager whose connections read responses within the limits; `options` go to PoolManager."""
    pool_manager = urllib3.PoolManager(**options)
    pool_manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
    return pool_manager


def body_of(response: urllib3.BaseHTTPResponse, *, most: int = MAX_ANSWER_BYTES, cut: bool = False) -> bytes:
    """Return the decompressed body of an unread response.

    With `cut`, a longer body is cut off after `most` bytes, and the connection is closed.

    Raises:
        ResponseLimitError: if the body has more than `most` bytes.
        HTTPError: if the body cannot be read, or has an unrequested compression.
    """
    decode = _make_decoder(response.headers.get("Content-Encoding", ""), most)
    body = bytearray()
    while data := response.read(_CHUNK_BYTES, decode_content=False):
        body += decode(data)
        if len(body) > most:
            response.close()
            if cut:
                break
            raise ResponseLimitError(f"its answer has more than {most:,} bytes")
    return bytes(body[:most])


def limit_reached(error: BaseException) -> str:
    """Return the message of the exceeded limit that caused an error, or "" for any other cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ResponseLimitError, _LimitError)):
            return str(cause)
        inner = cause.args[-1] if cause.args else None
        cause = cause.__cause__ or (inner if isinstance(inner, BaseException) else cause.__context__)
    return ""


def _make_decoder(encoding: str, most: int) -> Callable[[bytes], bytes]:
    """Return a function that decompresses the next bytes, to at most `most` + 1 bytes at once."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return bytes
    if name not in _COMPRESSED:
        raise urllib3.exceptions.DecodeError("its answer is compressed in a way that was not asked for")
    stream = zlib.decompressobj(_ANY_HEADER)

    def decode(data: bytes) -> bytes:
        try:
            return stream.decompress(data, most + 1)
        except zlib.error:
            raise urllib3.exceptions.DecodeError("its answer cannot be decompressed") from None

    return decode


class _LimitedSocket(io.RawIOBase):
    """The data of a socket, limited in time and size."""

    def __init__(self, raw: io.RawIOBase, settimeout: Callable[[float], None], until_s: float) -> None:
        super().__init__()
        self._raw = raw
        self._settimeout = settimeout
        self._until_s = until_s
        self._remaining_bytes = MAX_ANSWER_BYTES + _HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining_s = self._until_s - time.monotonic()
        if remaining_s <= 0:
            raise _timeout_error()
        self._settimeout(remaining_s)
        try:
            read: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            raise _timeout_error() from None
        self._remaining_bytes -= read or 0
        if self._remaining_bytes < 0:
            raise _LimitError(f"its answer has more than {MAX_ANSWER_BYTES:,} bytes")
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


def _timeout_error() -> _LimitError:
    return _LimitError(f"its answer takes longer than {ANSWER_WITHIN_S:.0f} s")


class _LimitedResponse(http.client.HTTPResponse):
    """A response whose head and body are read within the limits."""

    def __init__(self, sock: Any, *arguments: Any, until_s: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        # The buffer is still empty, so no data is lost.
        self.fp = io.BufferedReader(_LimitedSocket(self.fp.detach(), sock.settimeout, until_s))


def _resolve(connection: HTTPConnection) -> list[str]:
    """Return the IP addresses of the connection's host.

    The name is resolved in another thread, because the C library ignores interrupts and alarms meanwhile.

    Raises:
        NameResolutionError: if there is no address, or no answer within `RESOLVED_WITHIN_S`.
    """
    host, port = connection._dns_host, connection.port  # noqa: SLF001  the host, with a dot at its end
    with suppress(ValueError):
        return [str(ip_address(host.strip("[]")))]
    results: list[list[str] | OSError] = []

    def resolve() -> None:
        try:
            # In the order of the resolver, each once.
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            results.append([*dict.fromkeys(str(entry[4][0]) for entry in entries)])
        except (OSError, UnicodeError) as error:
            results.append(error if isinstance(error, OSError) else OSError(str(error)))

    worker = Worker(resolve)
    worker.start()
    worker.wait(RESOLVED_WITHIN_S)
    result = results[0] if results else OSError(f"the name is not resolved within {RESOLVED_WITHIN_S:.0f} s")
    if isinstance(result, OSError):
        raise urllib3.exceptions.NameResolutionError(host, connection, socket.gaierror(*result.args)) from result
    return result


class _LimitedConnection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        host = self._dns_host
        addresses = _resolve(self)
        try:
            for index, address in enumerate(addresses):
                self._dns_host = address
                try:
                    return super()._new_conn()
                except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError):
                    if index == len(addresses) - 1:
                        raise
        finally:
            # The name, which TLS verifies.
            self._dns_host = host
        raise AssertionError("a name has an address")

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        self.response_class = partial(_LimitedResponse, until_s=time.monotonic() + ANSWER_WITHIN_S)  # type: ignore[assignment]
        return super().getresponse()


class _LimitedHTTPSConnection(_LimitedConnection, HTTPSConnection):
    pass


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _LimitedConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _LimitedHTTPSConnection
