"""Compare commands on a live registry with a bare loop that sends the same requests.

    python benchmarks/live_scale.py [--registry URL] [--topics N] [--rounds N]

Without `--registry`, `schemactl serve` is measured. A repository of `apply.py` is applied for the first time, and then `plan`, `drift`
and `status` have nothing to do. Each command is compared with two bare loops that send its requests with http.client and read the JSON
of the responses, directly before the command:

- `parallel`: as many connections as the command, a thread each, which is the fastest way to send them from Python;
- `in turn`: one after another on one connection, as a plain script does.

Printed are wall and CPU seconds (medians of the rounds), and the wall time of each loop with the ratio to it. For each topic, it prints
the requests, and the CPU that the command takes more than the parallel loop. A first apply has one round.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from apply import COMMAND, TOPICS_IN_A_NAMESPACE, make, make_definition
from repositories import ENVIRONMENT

from schemactl.core.deadline import PARALLEL

REQUEST = re.compile(r"debug: \S+ s: ([A-Z]+) http://[^/]+(/admin/v2/\S+): ")

Request = tuple[str, str, str | None]
"""A method, a path and a JSON body."""


class Cost(NamedTuple):
    """The wall and CPU seconds of some work."""

    wall_s: float
    cpu_s: float


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", help="the admin API of a broker")
    parser.add_argument("--topics", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, run_registry(Path(folder), args.registry) as url:
        path = Path(folder, "shop")
        make(path, url, args.topics, ["warm", "bare", "turn", "live"])
        # Fill the caches of the history and of the bytecode.
        run(path, "plan", "--target", "warm")
        print(f"{args.topics:,} topics, {url}")
        names = read_namespaces(path)
        # Java compiles during the first requests.
        for target, count in (("warm", min(args.topics, 1_000)), ("bare", 0), ("turn", 0)):
            send_all(url, list(list_creations(names[target])), 1)
            send_all(url, list_first_requests(names[target], count), PARALLEL)
        first_loop = measure(partial(send_all, url, list_first_requests(names["bare"], args.topics), PARALLEL))
        first_turn = measure(partial(send_all, url, list_first_requests(names["turn"], args.topics), 1))
        applied, errors = run(path, "apply", "--target", "live", "--yes", "--debug")
        print_row("first apply", args.topics, [first_loop], [first_turn], [applied], len(REQUEST.findall(errors)))
        for command in ("plan", "drift", "status"):
            arguments = [command, "--target", "live"]
            requests = [(method, path, None) for method, path in REQUEST.findall(run(path, *arguments, "--debug")[1])]
            sequences: list[list[Request]] = [[request] for request in requests]
            loops, turns, commands = [], [], []
            for _ in range(args.rounds):
                turns.append(measure(partial(send_all, url, sequences, 1)))
                loops.append(measure(partial(send_all, url, sequences, PARALLEL)))
                commands.append(run(path, "--quiet", *arguments)[0])
            print_row(command, args.topics, loops, turns, commands, len(requests))


@contextmanager
def run_registry(folder: Path, url: str | None) -> Iterator[str]:
    """Yield `url`, or the URL of a server that runs during the block."""
    if url:
        yield url
        return
    command = [*COMMAND, "serve", "--port", "0", "--registry", f"sqlite:{folder}/registry.db"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield (server.stdout.readline() if server.stdout else "").split()[-1]
    finally:
        server.terminate()
        server.wait()


def read_namespaces(path: Path) -> dict[str, list[str]]:
    """Return the namespaces of each target, in the order of their declared names."""
    targets = re.findall(r"^  (\w+): .*namespaces: \{(.*)\}\}$", (path / "schemactl.yaml").read_text(), re.MULTILINE)
    return {target: re.findall(r": ([^,]+)", names) for target, names in targets}


def list_creations(namespaces: Sequence[str]) -> Iterator[list[Request]]:
    """Yield the requests that create the namespaces, with their tenants."""
    for namespace in namespaces:
        yield [
            ("PUT", f"/admin/v2/tenants/{namespace.partition('/')[0]}", '{"allowedClusters": ["standalone"]}'),
            ("PUT", f"/admin/v2/namespaces/{namespace}", '{"schema_compatibility_strategy": "BACKWARD"}'),
        ]


def list_first_requests(namespaces: Sequence[str], topics: int) -> list[list[Request]]:
    """Return the smallest number of requests for each topic: create it, upload each version, and read each one back."""
    sequences = []
    # `make` gives a second version to half of the definitions, in the order of their paths.
    for number in range(topics):
        namespace = namespaces[number // TOPICS_IN_A_NAMESPACE]
        name = f"{namespace}/t{number % TOPICS_IN_A_NAMESPACE:03}"
        requests: list[Request] = [("PUT", f"/admin/v2/persistent/{name}", None)]
        for version in range(1 if number % 2 else 2):
            body = {"type": "AVRO", "schema": make_definition(version), "properties": {"schemactl.commit": "c" * 40}}
            requests.append(("POST", f"/admin/v2/schemas/{name}/schema", json.dumps(body)))
            requests.append(("GET", f"/admin/v2/schemas/{name}/schema/{version}", None))
        sequences.append(requests)
    return sequences


def send_all(url: str, sequences: list[list[Request]], connections: int) -> None:
    """Send sequences of requests on this number of connections, each in a thread; the JSON of the responses is read."""
    address = urlsplit(url)

    def send_part(part: list[list[Request]]) -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        for method, path, body in (request for sequence in part for request in sequence):
            connection.request(method, path, body, {"Accept": "application/json", "Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read()
            if response.status >= 500:
                raise SystemExit(f"{method} {path} answers {response.status}")
            if data.startswith((b"{", b"[", b'"')):
                json.loads(data)
        connection.close()

    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(send_part, (sequences[number::connections] for number in range(connections))))


def measure(work: Callable[[], object]) -> Cost:
    """Return the cost of work in this process."""
    before, start_s = os.times(), time.perf_counter()
    work()
    after = os.times()
    return Cost(time.perf_counter() - start_s, after.user + after.system - before.user - before.system)


def run(path: Path, *arguments: str) -> tuple[Cost, str]:
    """Run a command that must succeed, and return its cost and its standard error."""
    # Without a cache of the bytecode, a command compiles all modules that it imports, as no installation does twice.
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(path.parent / "bytecode")
    with tempfile.TemporaryFile("w+") as errors:
        start_s = time.perf_counter()
        process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=path, env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start_s
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ends with {process.returncode}: {text[-1000:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime), text


def print_row(
    title: str, topics: int, loops: Sequence[Cost], turns: Sequence[Cost], commands: Sequence[Cost], requests: int
) -> None:
    """Print the medians of the bare loops and of a command, and their ratios."""
    loop, turn, command = (
        Cost(*map(statistics.median, zip(*costs, strict=True))) for costs in (loops, turns, commands)
    )
    print(
        f"{title:12} wall {command.wall_s:6.2f} s   parallel {loop.wall_s:6.2f} s, ratio {command.wall_s / loop.wall_s:5.2f}   "
        f"in turn {turn.wall_s:6.2f} s, ratio {command.wall_s / turn.wall_s:5.2f}   "
        f"CPU {command.cpu_s:6.2f} s, {(command.cpu_s - loop.cpu_s) / topics * 1000:5.2f} ms more for each topic   "
        f"{requests / topics:5.2f} requests for each topic",
        flush=True,
    )


if __name__ == "__main__":
    main()
