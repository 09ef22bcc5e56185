"""`serve`: run the embedded registry behind Pulsar's admin API."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, make_number_type
from schemactl.core.errors import MissingProject, SchemactlError, UsageError
from schemactl.core.project import Project


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    parser.description = (
        "Serve the embedded registry as a Pulsar broker would: schemas, and the tenants, namespaces, topics and policies "
        "around them. Prints its URL when it is ready, and ends on Ctrl-C, SIGTERM or SIGHUP. The project's `pulsar` and `defaults` "
        "select its release, and replace the broker's own settings. There is no authentication: requests whose Host "
        "header has an unknown name, as foreign web pages make browsers send, are rejected."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl serve --port 0                                         in memory, on a free port\n"
        "  schemactl serve --registry sqlite:.schemactl/registry.db         the registry of `plan --target local`\n"
        "  pulsar-admin --admin-url http://127.0.0.1:8080 schemas get shop/sales/orders\n"
    )
    add_options(
        parser,
        "--port N: the port, or 0 for any free port (default: 8080)",
        type=make_number_type(0, 65535),
        default=8080,
    )
    add_options(
        parser,
        "--registry URL: sqlite:PATH, memory: or module:Class?metadata=PATH (default: memory:, lost when it ends)",
        default="memory:",
    )
    add_options(
        parser,
        "--host ADDRESS: address to listen on (default: 127.0.0.1); any address other than this machine's own requires --allow-host",
        default="127.0.0.1",
    )
    add_options(
        parser,
        "--allow-host NAME...: a name or address, besides localhost, by which clients may call the server; may be repeated",
    )


def run_serve(args: argparse.Namespace, context: Context) -> int:
    """Serve the registry until it is stopped."""
    from schemactl.declare.project import load_project
    from schemactl.registry import open_embedded

    try:
        from schemactl.registry.server.app import is_loopback, parse_host_name, serve
    except ModuleNotFoundError as error:
        raise SchemactlError(
            f"serve needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[serve]"'
        ) from error
    allowed_hosts = [parse_host_name(name) for name in args.allow_host]
    for name, written in zip(allowed_hosts, args.allow_host, strict=True):
        if not name:
            raise UsageError(f"--allow-host {written}: this is not a host name", fix="write NAME, without port")
    if not is_loopback(args.host.strip("[]")):
        if not allowed_hosts:
            raise UsageError(
                f"--host {args.host} lets other machines in, and there is no authentication",
                fix="give the name by which clients call the server, with --allow-host NAME; or omit --host",
            )
        context.say(
            f"warning: every client that reaches {args.host} and calls it {' or '.join(allowed_hosts)} can read, "
            "write and delete everything here: "
            "there is no authentication"
        )
    try:
        project, _ = load_project(context.directory, context.config)
    except MissingProject:
        project = Project()
    registry = open_embedded(
        args.registry, release=project.release, defaults=project.defaults, folder=Path(context.directory)
    )
    if registry is None:
        raise UsageError(
            f"--registry {args.registry} is not an embedded registry",
            fix="write sqlite:PATH, memory: or module:Class?metadata=PATH",
        )
    with closing(registry):
        # Report a file that cannot be used now, not to the first client.
        registry.tenants()
        serve(
            registry,
            host=args.host,
            port=args.port,
            ready=lambda url: print(url, flush=True),
            allowed_hosts=allowed_hosts,
        )
    return 0
