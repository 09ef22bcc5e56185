"""Render descriptions, which are Markdown, as safe HTML and as plain text, and the code that readers paste."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from schemactl.core.project import Target
from schemactl.core.schema import SchemaType
from schemactl.core.terminal import on_one_line

_MARKS: Final = re.compile(r"[*_`\[\]<>#|~]|^\s*(?:[-+]|\d+[.)])\s|\n", re.MULTILINE)
"""The marks without which Markdown is the text itself."""


_PARSER: Final = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["image", "heading", "lheading", "html_block", "html_inline", "hr"])
)
"""The parser of the subset: no HTML, no images, which would be loaded from another host, and no headings, which the page has."""


@lru_cache(4096)
def render_markdown(text: str) -> Markup:
    """Return a description as HTML paragraphs, lists, tables, code and links to other pages."""
    clean = _clean(text)
    if not _MARKS.search(clean):
        return Markup("<p>{}</p>").format(clean) if clean else Markup()
    tokens = _PARSER.parse(clean)
    for token in _flatten(tokens):
        if token.type == "link_open":
            token.attrSet("rel", "noreferrer")
        elif token.type in ("code_block", "fence"):
            token.info = ""
    html: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))  # noqa: S704  the parser escapes all text


@lru_cache(4096)
def plain_text(text: str) -> str:
    """Return a description as one line without marks."""
    clean = _clean(text)
    if not _MARKS.search(clean):
        return clean
    words = [
        token.content
        for token in _flatten(_PARSER.parse(clean))
        if token.type in ("text", "code_inline", "fence", "code_block")
    ]
    return re.sub(r"\s+([.,;:!?])", r"\1", " ".join(" ".join(words).split()))


def _clean(text: str) -> str:
    return text if text.isprintable() else "\n".join(map(on_one_line, text.split("\n"))).strip()


def _flatten(tokens: Sequence[Token]) -> list[Token]:
    flat = []
    for token in tokens:
        flat += _flatten(token.children) if token.type == "inline" and token.children else [token]
    return flat


@dataclass(frozen=True)
class Snippets:
    """Code in one language: what to install, and code blocks by heading."""

    label: str
    install: str
    blocks: Sequence[tuple[str, str]]


def find_service_url(target: Target | None) -> str:
    """Return the address for clients of a target with an HTTP registry: its label `service_url`, else the default port of its registry's host."""
    if target is None:
        return "pulsar://localhost:6650"
    if address := target.labels.get("service_url"):
        return address
    parts = urlsplit(target.registry)
    return f"pulsar+ssl://{parts.hostname}:6651" if parts.scheme == "https" else f"pulsar://{parts.hostname}:6650"


def write_snippets(schema_type: SchemaType, *, url: str, package: str, has_columns: bool) -> list[Snippets]:
    """Return the code that produces, consumes and reads a topic, for each language that can.

    The script of the site replaces `$topic$`, `$schema$` (tenant/namespace/topic), `$name$`, `$module$`, `$constant$` and `$table$`.

    Args:
        schema_type: the type of its definition in force.
        url: the service URL of Pulsar.
        package: the name of the generated package, or "" without a package.
        has_columns: whether Spark has columns for it.
    """
    topic, module, constant = "$topic$", "$module$", "$constant$"
    snippets = []
    distribution = package.replace("_", "-")
    if package:
        snippets.append(
            Snippets(
                "Python",
                f"pip install {distribution} pulsar-client",
                [
                    (
                        "Consume",
                        (
                            f'import pulsar\nfrom {package}.{module} import {constant}\n\nclient = pulsar.Client("{url}")\n'
                            f'schema = {constant}.pulsar_schema(client, mode="RECEIVE_ONLY")\n'
                            f'consumer = client.subscribe({constant}.name, "my-service", schema=schema, properties=schema.properties)\n'
                            "message = consumer.receive()\nvalue = message.value()  # whichever version wrote it\n"
                            "consumer.acknowledge(message)"
                        ),
                    ),
                    (
                        "Produce",
                        (
                            f'import pulsar\nfrom {package}.{module} import {constant}\n\nclient = pulsar.Client("{url}")\n'
                            f"schema = {constant}.pulsar_schema(client)\n"
                            f"producer = client.create_producer({constant}.name, schema=schema, properties=schema.properties)\n"
                            "producer.send(value)  # such as the example message"
                        ),
                    ),
                ],
            )
        )
    if package and has_columns:
        snippets.append(
            Snippets(
                "Spark",
                f'pip install "pulsar-schemactl[spark]" {distribution}',
                [
                    (
                        "Read every version under one schema",
                        (
                            "from pyspark.sql import SparkSession\nfrom schemactl.spark import PulsarSource\n"
                            f"from {package}.{module} import {constant}\n\n"
                            "spark = SparkSession.builder.getOrCreate()\nspark.dataSource.register(PulsarSource)\n"
                            'messages = (\n    spark.read.format("pulsar-schemactl")\n'
                            f'    .option("service.url", "{url}")\n    .option("topic", "{topic}")\n    .load()\n)\n'
                            f"rows, rejected = {constant}.split({constant}.decode(messages))"
                        ),
                    )
                ],
            )
        )
    if has_columns:
        snippets.append(
            Snippets(
                "SQL",
                "schemactl spark land --help  # lands $name$ in a Delta, Iceberg or Parquet table",
                [
                    (
                        "Query the landed table",
                        (
                            "SELECT __schemaVersion, count(*) AS messages, max(__publishTime) AS newest\nFROM $table$\n"
                            "GROUP BY __schemaVersion\nORDER BY __schemaVersion"
                        ),
                    )
                ],
            )
        )
    snippets.append(
        Snippets(
            "Java",
            "org.apache.pulsar:pulsar-client",
            [
                (
                    "Consume",
                    (
                        f'try (PulsarClient client = PulsarClient.builder().serviceUrl("{url}").build();\n'
                        "     Consumer<GenericRecord> consumer = client.newConsumer(Schema.AUTO_CONSUME())\n"
                        f'         .topic("{topic}")\n'
                        '         .subscriptionName("my-service").subscribe()) {\n'
                        "    Message<GenericRecord> message = consumer.receive();\n"
                        "    GenericRecord value = message.getValue();  // the fields of the version that wrote it\n"
                        "    consumer.acknowledge(message);\n}"
                    ),
                )
            ],
        )
    )
    go_schema = {
        SchemaType.AVRO: "pulsar.NewAvroSchema(definition, nil)",
        SchemaType.JSON: "pulsar.NewJSONSchema(definition, nil)",
        SchemaType.STRING: "pulsar.NewStringSchema(nil)",
    }.get(schema_type, "")
    command = "schemactl show $schema$"
    schema_lines = f"    Schema: {go_schema},\n" if go_schema else ""
    if "definition" in go_schema:
        schema_lines = f"    // definition: the output of `{command}`\n{schema_lines}"
    snippets.append(
        Snippets(
            "Go",
            "go get github.com/apache/pulsar-client-go",
            [
                (
                    "Consume",
                    (
                        f'client, err := pulsar.NewClient(pulsar.ClientOptions{{URL: "{url}"}})\n'
                        "if err != nil {\n    log.Fatal(err)\n}\ndefer client.Close()\n"
                        "consumer, err := client.Subscribe(pulsar.ConsumerOptions{\n"
                        f'    Topic: "{topic}",\n    SubscriptionName: "my-service",\n'
                        f"{schema_lines}"
                        "})\nif err != nil {\n    log.Fatal(err)\n}\n"
                        "message, err := consumer.Receive(context.Background())"
                    ),
                )
            ],
        )
    )
    snippets.append(
        Snippets(
            "Node",
            "npm install pulsar-client" + (" avsc" if schema_type is SchemaType.AVRO else ""),
            [("Consume", _write_node(schema_type, url, command))],
        )
    )
    return snippets


def _write_node(schema_type: SchemaType, url: str, command: str) -> str:
    lines = ["const Pulsar = require('pulsar-client');"]
    decode = "message.getData()"
    if schema_type is SchemaType.AVRO:
        lines += ["const avsc = require('avsc');", f"const type = avsc.Type.forSchema(definition);  // {command}"]
        decode = "type.fromBuffer(message.getData())"
    elif schema_type is SchemaType.JSON:
        decode = "JSON.parse(message.getData().toString())"
    elif schema_type is SchemaType.STRING:
        decode = "message.getData().toString()"
    return "\n".join(
        [
            *lines,
            "",
            f"const client = new Pulsar.Client({{serviceUrl: '{url}'}});",
            "const consumer = await client.subscribe({topic: '$topic$', subscription: 'my-service'});",
            "const message = await consumer.receive();",
            f"const value = {decode};",
            "await consumer.acknowledge(message);",
        ]
    )


def escape_code(code: str) -> Markup:
    """Return code as HTML for the text of an element, where quotes are not escaped: a definition has thousands."""
    return Markup(escape(code, quote=False))  # noqa: S704  all text is escaped


def shorten_label(text: str, most: int) -> str:
    """Return the first `most` characters of a text in a drawing, as HTML."""
    clean = on_one_line(text)
    return escape(clean if len(clean) <= most else f"{clean[: most - 1]}\N{HORIZONTAL ELLIPSIS}")


def highlight(code: str) -> Markup:
    """Return code with its strings and comments marked."""
    parts = re.split(r"(\"[^\"\n]*\"|'[^'\n]*'|(?:#|//|--) .*)", code)
    text = ""
    for part in parts:
        if part[:1] in "\"'" and part:
            text += f'<span class="s">{escape_code(part)}</span>'
        elif re.match(r"(?:#|//|--) ", part):
            text += f'<span class="c">{escape_code(part)}</span>'
        else:
            text += str(escape_code(part))
    return Markup(text)  # noqa: S704  all text is escaped


def clean_value(value: Any) -> Any:
    """Return a value without control characters, unless it is generated HTML."""
    if isinstance(value, (Markup, int)) or (isinstance(value, str) and value.isprintable()):
        return value
    return "\n".join(map(on_one_line, str(value).split("\n")))
