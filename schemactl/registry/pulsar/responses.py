"""Read a broker's responses: limited in size and time, with the broker's message, its exception, and whether a retry can help."""

from __future__ import annotations

import html
import http.client
import io
import json
import re
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from schemactl.core.errors import RegistryError
from schemactl.core.policies import CompatibilityStrategy

MAX_ANSWER_BYTES: Final = 64 << 20
"""The largest answer that is read, both as it is sent and decompressed."""

ANSWER_WITHIN_S: Final = 60.0
"""How long an answer may take from the end of the request to the end of its body, however steadily it comes."""

_CHUNK_BYTES: Final = 1 << 16
_HEAD_BYTES: Final = 1 << 20
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS
"""gzip's header or zlib's (zlib.decompressobj)."""


class ResponseLimitError(urllib3.exceptions.HTTPError):
    """A response beyond a limit; a retry would not help."""


class _Limit(OSError):
    """A limit reached while reading from a socket; becomes `ResponseLimitError` above urllib3."""


def manager(**options: Any) -> urllib3.PoolManager:
    """Return a pool of connections that reads responses within the limits; `options` are PoolManager's."""
    made = urllib3.PoolManager(**options)
    made.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return made


def body_of(response: urllib3.BaseHTTPResponse, *, most: int = MAX_ANSWER_BYTES, cut: bool = False) -> bytes:
    """Return the decompressed body of a response that has not been read.

    With `cut`, a longer body is cut off after `most` bytes, and the connection is closed.

    Raises:
        ResponseLimitError: it has more than `most` bytes.
        HTTPError: it cannot be read, or is compressed in a way that was not asked for.
    """
    decode = _decoder(response.headers.get("Content-Encoding", ""), most)
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
    """Return the message of an error that comes from a limit; "" for any other."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, (ResponseLimitError, _Limit)):
            return str(found)
        inner = found.args[-1] if found.args else None
        found = found.__cause__ or (inner if isinstance(inner, BaseException) else found.__context__)
    return ""


def _decoder(encoding: str, most: int) -> Callable[[bytes], bytes]:
    """Return a function that decompresses the next bytes, never to many more than `most` at once."""
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


class _Raw(io.RawIOBase):
    """A socket's data, until the time or the number of bytes is used up."""

    def __init__(self, raw: io.RawIOBase, settimeout: Callable[[float], None], until_s: float) -> None:
        super().__init__()
        self._raw = raw
        self._settimeout = settimeout
        self._until_s = until_s
        self._left = MAX_ANSWER_BYTES + _HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise _late()
        self._settimeout(left_s)
        try:
            read: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            raise _late() from None
        self._left -= read or 0
        if self._left < 0:
            raise _Limit(f"its answer has more than {MAX_ANSWER_BYTES:,} bytes")
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


def _late() -> _Limit:
    return _Limit(f"its answer takes longer than {ANSWER_WITHIN_S:.0f} s")


class _Answer(http.client.HTTPResponse):
    """A response whose head and body are read within the limits."""

    def __init__(self, sock: Any, *arguments: Any, until_s: float, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        # Nothing has been read yet, so that nothing is left behind in the buffer.
        self.fp = io.BufferedReader(_Raw(self.fp.detach(), sock.settimeout, until_s))


class _Bounded(HTTPConnection):
    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        self.response_class = partial(_Answer, until_s=time.monotonic() + ANSWER_WITHIN_S)  # type: ignore[assignment]
        return super().getresponse()


class _SecureBounded(_Bounded, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Bounded


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureBounded


# Replies: the message, the exception behind it, and retries


MAX_MESSAGE = 2_000
"""The most characters of a broker's message that are kept: with the definitions that it quotes it can have megabytes."""

MAX_ERROR_BYTES = 1 << 20
"""The most bytes of an error reply's body that are read."""

LONGEST_VERSION = 64
"""The most characters of what brokers say their release is."""

TOO_MANY_REQUESTS = 429
_UNAUTHORIZED, _CONFLICT, _PRECONDITION_FAILED, _SERVER_ERROR = 401, 409, 412, 500
_GATEWAY = frozenset({502, 503, 504})

_UNEXPECTED = "An unexpected error occurred in the server"
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STACKTRACE = re.compile(r"Stacktrace:\s*([\w.$]+)")
_MESSAGE_CELL = re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)(?:</td>|\Z)", re.DOTALL)
_TRANSIENT_EXCEPTION = re.compile(r"Timeout|MetadataStore|ManagedLedger|BKException|Connect|AlreadyClosed|NotLeader")
_NO_BOOKIES = "Not enough non-faulty bookies"
_NO_BOOKIE = "Bookie handle is not available"
"""What brokers say of a ledger whose bookie has not come back yet after a restart."""


class Reply(NamedTuple):
    """A reply over HTTP; of a successful one, reason and content type are not kept.

    `retry_after_s` is the header of that name, how long it asks to wait; `redirected_to` the host that gave the reply,
    if the cluster redirected to it. `has_schema_version` says of a reply with a message whether that carries the number of its
    schema.
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
        """Return the body's value; None where it is empty, as Pulsar answers for a policy that is not set.

        Raises:
            ValueError: the body is not JSON, nests too deep, or holds text that has no UTF-8.
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


def retry_after_s(header: str) -> float | None:
    """Return the seconds to wait for a `Retry-After` header, a number or a date; None if it is neither."""
    if header.isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # of no date, and of one without a time zone
        return None


def strategy_named(text: str | None) -> CompatibilityStrategy:
    """Return the strategy of that name, UNDEFINED for None; raise RegistryError if there is no such strategy."""
    try:
        return CompatibilityStrategy.UNDEFINED if text is None else CompatibilityStrategy(text)
    except ValueError:
        raise RegistryError(
            f"the registry has a compatibility strategy that this version does not know: {(text or '')[:60]!r}",
            fix="upgrade schemactl",
        ) from None


def error_message(reply: Reply) -> str:
    """Return the broker's message, at most `MAX_MESSAGE` long.

    It is the reason in JSON, else the message of Jetty's page (JSON or HTML), else the reason phrase.
    """
    text = _reason(reply) or reply.reason
    if _UNEXPECTED in text and "Message:" in text:
        text = _message(text)
    text = text.strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."


def _message(text: str) -> str:
    """Return the text between "Message:" and a line that begins with "Stacktrace:", in one pass."""
    lines = text.partition("Message:")[2].split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.lstrip().startswith("Stacktrace:")), None)
    return "\n".join(lines[:end])


def exception(reply: Reply) -> str:
    """Return the simple name of the Java exception behind an unexpected error; "" for any other reply."""
    found = _STACKTRACE.search(_reason(reply))
    return found[1].rpartition(".")[2].rpartition("$")[2] if found else ""


def is_concurrent_modification(reply: Reply) -> bool:
    """Whether nothing was written because another client wrote at the same time. An upload's other 409, incompatible, has no reason."""
    return reply.status == _CONFLICT and b'"reason"' in reply.body and error_message(reply) == "Concurrent modification"


def is_unauthenticated(reply: Reply) -> bool:
    """Whether the broker rejects the credentials. A role without permission gets a 401, too, but with a reason in JSON."""
    return reply.status == _UNAUTHORIZED and b'"reason"' not in reply.body


def is_too_big(reply: Reply, size: int) -> bool:
    """Whether an upload of `size` bytes was too big for a ledger entry; the broker reports that as an error of its bookies."""
    return reply.status >= _SERVER_ERROR and size > 4_000_000 and _NO_BOOKIES in error_message(reply)


def can_succeed_later(reply: Reply, sent_bytes: int = 0) -> bool:
    """Whether a retry of the same request, with a body of `sent_bytes`, may succeed in a moment.

    It may when the topic's bundle has no owner just now (412), when another client was faster (409), for a busy server or a
    gateway without one, and for a 500 that is either not Pulsar's own or comes from its storage, which starts more slowly than
    a broker. Any other 500 of Pulsar's is a refusal.
    """
    if reply.status == _SERVER_ERROR and _NO_BOOKIES in error_message(reply):
        return not is_too_big(reply, sent_bytes)
    if reply.status == _SERVER_ERROR and _NO_BOOKIE in error_message(reply):
        return True
    if reply.status == _SERVER_ERROR:
        return _UNEXPECTED not in _reason(reply) or _TRANSIENT_EXCEPTION.search(exception(reply)) is not None
    if reply.status in _GATEWAY or reply.status in (TOO_MANY_REQUESTS, _PRECONDITION_FAILED):
        return True
    return is_concurrent_modification(reply)


def _reason(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if "json" in reply.content_type:
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
    raise ValueError(f"{name} is not a JSON number")
