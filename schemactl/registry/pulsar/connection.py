"""Requests to a cluster's admin API: one pool, what may be repeated is repeated, redirects lead to the owning broker."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event, RLock
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError

from schemactl.errors import RegistryError
from schemactl.printing import on_one_line
from schemactl.registry.base import Warn, no_warning
from schemactl.registry.pulsar import bounded
from schemactl.registry.pulsar.answers import (
    MAX_REFUSAL_BYTES,
    Reply,
    can_succeed_later,
    fits,
    words,
)
from schemactl.registry.pulsar.credentials import Credentials, is_private
from schemactl.registry.pulsar.patience import Patience

CONNECTIONS: Final = 8
"""How many requests run at once, at most. More of them cost more of our own time than they save of the brokers'."""

_HEADERS: Final = {"Accept": "application/json, */*;q=0.1", "User-Agent": "schemactl"}
_HEADERS_WITH_BODY: Final = {**_HEADERS, "Content-Type": "application/json"}
_NO_RETRIES: Final = urllib3.Retry(total=False)
_TIMEOUT = urllib3.Timeout(connect=10.0, read=60.0)
_FIRST_PATIENCE_S = 2.0
"""How long a cluster that never answered yet is tried: its address may be wrong."""
_PATIENCE_S = 60.0
"""How long one that has answered is tried: a broker restarts in less."""
_ALL_PATIENCE_S = 180.0
"""How long, in all, a command waits for a cluster that does not answer as it should."""
_LONGEST_DELAY_S = 5.0
_MAX_REDIRECTS = 5
_MAX_SHOWN = 200
_MAX_CLUSTERS = 64
_REDIRECTS = frozenset({307, 308})
_UNAUTHORIZED, _FORBIDDEN = 401, 403

HostPort = tuple[str, int]


class NoResponseError(RegistryError):
    """The request may or may not have been carried out: no answer came."""


class AdminConnection:
    """A cluster's admin API.

    Safe for use by several threads; `CONNECTIONS` requests run at once, further ones wait.

    Args:
        url: `http(s)://HOST:PORT`, or several of a cluster's separated by commas, tried in turn.
        credentials: sent to the hosts of the cluster alone; a token not without encryption, but to this machine.
        warn: told when there is something to wait for.
    """

    def __init__(self, url: str, credentials: Credentials, warn: Warn = no_warning) -> None:
        self.url = url
        try:
            self._bases = _bases(url)
            self._cluster = {_host_port(base) for base in self._bases}
        except ValueError as error:
            raise RegistryError(
                f"{url!r} is no address of an admin API: {error}", fix="write https://HOST:PORT as `registry`"
            ) from None
        self._credentials = credentials
        for base in self._bases:
            self._refuse_open(base, f"{url}: ")
        self._manager = bounded.manager(
            num_pools=64,
            maxsize=CONNECTIONS,
            block=True,
            timeout=_TIMEOUT,
            ssl_context=credentials.tls,
        )
        self._pools: dict[str, urllib3.HTTPConnectionPool] = {}
        self._patience = Patience(
            _ALL_PATIENCE_S, lambda text: warn(f"{url}: {self._credentials.cleared(text)}")
        )
        self._base = 0
        self._answered = False
        self._asked_for_brokers = False
        self._lock = RLock()
        self._stopped = Event()

    def close(self) -> None:
        """The pool's connections are closed."""
        self._manager.clear()

    def get(self, path: str, shape: Any, **absent: Any) -> Any:
        """The JSON value at `path` below `/admin/v2/`, of that `shape` (see `fits`); None where the answer is empty.

        With `absent=value`, that value stands for an answer 404.

        Raises:
            RegistryError: no answer, a refusal, or something else than Pulsar answers.
        """
        reply = self.send("GET", path)
        if reply.status == 404 and absent:
            return absent["absent"]
        self.expect(reply, f"GET {path}")
        return self.told(reply, f"GET {path}", shape)

    def told(self, reply: Reply, what: str, shape: Any) -> Any:
        """The JSON value of an answer to `what`, of that `shape` (see `fits`).

        Raises:
            RegistryError: it is something else.
        """
        fix = "check that `registry` of the target is the address of Pulsar's admin API"
        try:
            value = reply.json()
        except (ValueError, RecursionError):
            raise RegistryError(f"{self.url}: {what} answers something that is not JSON", fix=fix) from None
        if not fits(value, shape):
            raise RegistryError(f"{self.url}: {what} answers something else than Pulsar does", fix=fix)
        return value

    def send(self, method: str, path: str, body: Any = None) -> Reply:
        """The last word of the cluster on a request that may be repeated, whatever it is.

        Raises:
            RegistryError: there is no answer, even after trying for a while.
        """
        sent_bytes = len(json.dumps(body)) if body is not None else 0
        start_s = time.monotonic()
        for delay_s in self.delays():
            asked_for_s = 0.0
            try:
                reply = self.send_once(method, path, body)
            except NoResponseError as error:
                # One answer can be waited for as long as all of them.
                if delay_s is None or time.monotonic() > start_s + self._patience_s:
                    raise
                why = error.what.removeprefix(f"{self.url}: ")
            else:
                if reply.fine or delay_s is None or not can_succeed_later(reply, sent_bytes):
                    return reply
                asked_for_s = min(reply.retry_after_s or 0.0, _PATIENCE_S)
                why = f"answers {reply.status}"
            self.pause(max(delay_s, asked_for_s), f"{method} {path}: {why}", start_s)
        raise AssertionError("the last delay is None")

    def pause(self, delay_s: float, why: str, start_s: float) -> None:
        """Waits before the next attempt at what was begun at `start_s`; the user is told why, once it takes a while."""
        with self._patience.waiting(why, since_s=start_s, until_s=start_s + self._patience_s):
            self._stopped.wait(delay_s)

    def send_once(self, method: str, path: str, body: Any = None) -> Reply:
        """The answer to a request that is made once, but for redirects and a token that had expired.

        Raises:
            NoResponseError: no answer came; whether the request was carried out is not known.
            RegistryError: the request was not carried out, and repeating it would not help.
        """
        if self._stopped.is_set():
            raise RegistryError(f"{self.url}: {method} {path} was not begun: another request had failed")
        data = None if body is None else json.dumps(body).encode()
        base, target = self._address(path)
        for _ in range(_MAX_REDIRECTS):
            reply = self._authorized(method, base, target, data)
            if reply.status not in _REDIRECTS:
                return reply
            base, target = self._redirected(base + target, reply.reason)
        raise NoResponseError(
            f"{self.url}: redirected more than {_MAX_REDIRECTS} times: no broker owns {path} yet"
        )

    def expect(self, reply: Reply, what: str, *, of: object = "") -> None:
        """Nothing, if `reply` is a success. A 404 is about `of`, if given.

        Raises:
            RegistryError: it is not; with the broker's words, and the next step where it is known.
        """
        if reply.fine:
            return
        if of and reply.status == 404:
            raise RegistryError(f"{of} does not exist in the registry")
        fix = ""
        if reply.status == _UNAUTHORIZED:
            fix = "check the target's credentials, and what its role may do: docs/reference/targets.md lists the permissions"
        elif reply.status == _FORBIDDEN:
            fix = (
                "give the role the permission: docs/reference/targets.md lists those that plan and apply need"
            )
        said = on_one_line(self.words(reply))
        raise RegistryError(f"{self.url}: {what} answers {reply.status}{': ' if said else ''}{said}", fix=fix)

    def words(self, reply: Reply) -> str:
        """What the broker says, without secrets, in at most a few lines."""
        return self._credentials.cleared(words(reply))

    @contextmanager
    def threads(self) -> Iterator[ThreadPoolExecutor]:
        """Threads for as many requests as may run at once. After an exception no further request begins, nor is repeated."""
        executor = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="pulsar")
        try:
            yield executor
        except BaseException:
            self._stopped.set()
            raise
        finally:
            executor.shutdown(cancel_futures=True)
            self._stopped.clear()

    def delays(self) -> Iterator[float | None]:
        """How long to wait before each further attempt; None: there is none."""
        start_s = time.monotonic()
        for attempt in count():
            # Spread out, so that many clients of a broker that comes back do not come at once.
            delay_s = min(0.05 * 2**attempt, _LONGEST_DELAY_S) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            if time.monotonic() + delay_s > start_s + self._patience_s or self._patience.is_over:
                yield None
                return
            yield delay_s

    @property
    def _patience_s(self) -> float:
        return _PATIENCE_S if self._answered else _FIRST_PATIENCE_S

    def _refuse_open(self, base: str, place: str) -> None:
        """Nothing, unless a token were sent to `base` in the open."""
        if self._credentials.bearer is not None and not is_private(base):
            raise RegistryError(
                f"{place}a token is never sent over http, where anybody on the way can read it, but to this machine",
                fix="write https:// in `registry` of the target, or reach the cluster through a tunnel on 127.0.0.1",
            )

    def _authorized(self, method: str, base: str, target: str, data: bytes | None) -> Reply:
        bearer = self._credentials.bearer
        if bearer is None:
            return self._request(method, base, target, data, None)
        token = bearer.token()
        reply = self._request(method, base, target, data, token)
        if reply.status == _UNAUTHORIZED and bearer.renew(token):
            return self._request(method, base, target, data, bearer.token())
        return reply

    def _request(self, method: str, base: str, target: str, data: bytes | None, token: str | None) -> Reply:
        headers = _HEADERS if data is None else _HEADERS_WITH_BODY
        if token is not None:
            headers = {**headers, "Authorization": f"Bearer {token}"}
        try:
            response = self._pool_of(base).urlopen(
                method,
                target,
                body=data,
                headers=headers,
                retries=_NO_RETRIES,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
            )
            try:
                fine = response.status < 300
                most = bounded.MAX_ANSWER_BYTES if fine else MAX_REFUSAL_BYTES
                body = bounded.body_of(response, most=most, cut=not fine)
            finally:
                response.release_conn()
        except (HTTPError, UnicodeError) as error:
            raise self._no_answer(base, error) from None
        self._answered = True
        if fine:
            return Reply(response.status, body=body)
        headers_back = response.headers
        if response.status in _REDIRECTS:
            return Reply(response.status, headers_back.get("Location", ""), "", b"")
        retry_after = headers_back.get("Retry-After", "")
        return Reply(
            response.status,
            response.reason or "",
            headers_back.get("Content-Type", ""),
            body,
            float(retry_after) if retry_after.isdecimal() else None,
        )

    def _address(self, path: str) -> tuple[str, str]:
        """Where `path` below `/admin/v2/` is asked for first: the scheme and host, and the path on it."""
        scheme, _, rest = self._bases[self._base].partition("://")
        host, slash, prefix = rest.partition("/")
        return f"{scheme}://{host}", f"{slash}{prefix}/admin/v2/{path}"

    def _pool_of(self, base: str) -> urllib3.HTTPConnectionPool:
        # What urllib3's manager does to find a pool costs as much as a request.
        pool = self._pools.get(base)
        if pool is None:
            pool = self._pools[base] = self._manager.connection_from_url(base)
        return pool

    def _no_answer(self, base: str, error: HTTPError | UnicodeError) -> RegistryError:
        host, port = _host_port(base)
        if limit := bounded.limit_reached(error):
            return RegistryError(
                f"{self.url}: {host}:{port} is given up: {limit}",
                fix="check that `registry` of the target is the address of Pulsar's admin API",
            )
        if isinstance(error, SSLError) and "WRONG_VERSION_NUMBER" in str(error):
            return RegistryError(
                f"{self.url}: {host}:{port} does not speak TLS",
                fix="write http:// in `registry` of the target, or the port that speaks TLS",
            )
        if isinstance(error, SSLError):
            return RegistryError(
                f"{self.url}: no trust in {host}:{port}: {_cause(error)}",
                fix="name the cluster's certificate authority as `ca_file` of the target; check the host's name",
            )
        if isinstance(error, (NewConnectionError, ConnectTimeoutError)) and len(self._bases) > 1:
            with self._lock:
                self._base = (self._base + 1) % len(self._bases)
        return NoResponseError(
            f"{self.url}: {host}:{port} does not answer ({_cause(error)})",
            fix="check that the cluster runs, and that `registry` of the target is the address of its admin API",
        )

    def _redirected(self, url: str, location: str) -> tuple[str, str]:
        try:
            parts = urlsplit(urljoin(url, location))
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise RegistryError(
                f"{self.url}: redirected to {location[:200]!r}, which is no address of a broker"
            )
        if urlsplit(url).scheme == "https" and parts.scheme == "http":
            raise RegistryError(f"{self.url}: redirected from https to {parts.hostname} without encryption")
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._refuse_open(base, f"{self.url}: redirected to {base[:_MAX_SHOWN]}, and ")
        if self._credentials.secret and not self._is_of_cluster(_host_port(base)):
            raise RegistryError(
                f"{self.url}: redirected to {base}, which is not known to be of the cluster, so the credentials were not "
                "sent there",
                fix=f"if it is a broker of yours, add it to the target: registry: {self.url},{base}",
            )
        return base, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"

    def _is_of_cluster(self, address: HostPort) -> bool:
        """Whether the project file or the cluster itself names that address."""
        if address in self._cluster:
            return True
        with self._lock:
            if not self._asked_for_brokers:
                self._asked_for_brokers = True
                self._cluster |= self._brokers()
        return address in self._cluster

    def _brokers(self) -> set[HostPort]:
        """The brokers as the cluster lists them, on the ports that it or the project file names."""
        listed = _addresses(f"//{one}" for one in self._asked("brokers", list))
        ports = {port for _, port in self._cluster}
        for name in self._asked("clusters", list)[:_MAX_CLUSTERS]:
            told = self._asked(f"clusters/{quote(str(name), safe='')}", dict)
            for key in ("serviceUrl", "serviceUrlTls"):
                ports |= {port for _, port in _addresses(_bases(str(told.get(key) or "")))}
        return listed | {(host, port) for host, _ in listed for port in ports}

    def _asked(self, path: str, kind: type[Any]) -> Any:
        """What a configured host says; nothing, where the role may not ask (it takes a superuser)."""
        reply = self._authorized("GET", *self._address(path), None)
        try:
            value = reply.json() if reply.fine else None
        except ValueError:
            value = None
        return value if isinstance(value, kind) else kind()


def _bases(url: str) -> Sequence[str]:
    """`https://a:1,b:2` and `https://a:1,https://b:2` are two addresses."""
    first, *others = [part.strip().rstrip("/") for part in url.split(",")]
    scheme = first.partition("://")[0]
    return [first, *(other if "://" in other else f"{scheme}://{other}" for other in others if other)]


def _host_port(url: str) -> HostPort:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _addresses(urls: Iterable[str]) -> set[HostPort]:
    """Those of `urls` that have one."""
    found = set()
    for url in urls:
        with suppress(ValueError):
            found.add(_host_port(url))
    return found


def _cause(error: HTTPError | UnicodeError) -> str:
    """The last and most telling part of urllib3's words, which may otherwise name objects."""
    cause: BaseException = error
    while isinstance(inner := cause.__cause__ or (cause.args[-1] if cause.args else None), BaseException):
        cause = inner
    text = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
    return " ".join((text.rpartition("object at ")[2].partition(">: ")[2] or text).split())[:_MAX_SHOWN]
