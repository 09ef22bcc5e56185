"""The commands of docs/how-to/break.md, run in a repository as the page has them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from estate import Estate
from scratch import ENVIRONMENT, write_declaration

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "break.md"
ORDERS, SALES = "namespaces/orders.avsc", "namespaces/sales.yaml"
_COMMAND = re.compile(r"    ((?:schemactl|git|sed) .*)")


def list_blocks(section: str) -> list[list[str]]:
    """Return the commands below a heading of the page, in blocks of consecutive commands."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found_blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if command := _COMMAND.fullmatch(line):
            found_blocks[-1].append(command.group(1))
        elif found_blocks[-1]:
            found_blocks.append([])
    return [block for block in found_blocks if block]


def follow(estate: Estate, commands: list[str], *, first_check: int = 0) -> str:
    """Run these commands of the page, and return their output; the first check exits with `first_check`, all others with 0."""
    printed, expected = "", first_check
    for command in commands:
        waivable = re.search(r"schemactl waive ([0-9a-f]+)", printed)
        until = datetime.now(UTC).date() + timedelta(days=30)
        line = command.replace("FINGERPRINT", waivable.group(1) if waivable else "")
        program, *arguments = shlex.split(line.replace("YYYY-MM-DD", str(until)))
        if program != "schemactl":
            folder = estate.scratch.path
            subprocess.run([program, *arguments], cwd=folder, env=ENVIRONMENT, check=True)
            continue
        is_check = arguments[0] == "check"
        done = estate.run(*arguments, code=expected if is_check else 0)
        printed += done.out + done.err
        expected = 0 if is_check else expected
    return " ".join(printed.split())


def begin(estate: Estate, strategy: str, definition: str) -> None:
    """Restart the repository with this strategy and definition of orders, and apply it."""
    project = estate.scratch.git("show", "HEAD:schemactl.yaml")
    estate.scratch.git("update-ref", "-d", "HEAD")
    policies = f"namespace: shop/sales\nschema_compatibility_strategy: {strategy}\n"
    topic = {"namespaces/orders.yaml": write_declaration(), ORDERS: definition}
    ignored = {".gitignore": ".schemactl/\n"}
    estate.scratch.commit({"schemactl.yaml": project, SALES: policies, **topic, **ignored})
    estate.run("apply", "--auto-approve")


def make_order(*symbols: str, default: str | None = None, note: bool = False) -> str:
    """An Order with a status, and perhaps with a note."""
    status = {"type": "enum", "name": "Status", "symbols": symbols}
    fields: list[dict[str, Any]] = [{"name": "status", "type": status | ({"default": default} if default else {})}]
    fields += [{"name": "note", "type": "string", "default": ""}] if note else []
    return json.dumps({"type": "record", "name": "Order", "fields": fields})
