"""HTTP responses limited in size (compressed or not) and in time, whatever a server sends."""

from __future__ import annotations

import http.client
import io
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

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
