"""The main job, end to end: `make demo`, or `python -m examples.shop.demo [FOLDER]`.

Declarations in Git, a registry, generated codecs, a Spark job over messages of every version, and a change that fails the check.
Everything lies in FOLDER (default: `.demo`) afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from schemactl.spark import ensure_java

from . import history, messages

HERE = Path(__file__).parent
ORDERS = "namespaces/sales/orders/orders.avsc"

MARK = ".schemactl-demo"
"""The file that makes a folder the demo's own."""

GOOD = """\
        "symbols": ["PLACED", "PAID", "SHIPPED", "CANCELLED"],
        "default": "PLACED"
"""
BREAKING = """\
        "symbols": ["PLACED", "PAID", "CANCELLED"]
"""
FIXED = """\
        "symbols": ["PLACED", "PAID", "CANCELLED"],
        "default": "PLACED"
"""


def main(folder: Path) -> None:
    """Run all steps; stop at the first step with an unexpected result."""
    started_s = time.monotonic()
    # Replace the files of an earlier run, but never other files.
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise SystemExit(f"{folder} has files that the demo did not make: name a new folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    shop = folder / "shop"

    print_title("1. A Git repository: three namespaces, sixteen topics (one of them gone again), twenty commits")
    history.make(shop)
    run(shop, "git", "--no-pager", "log", "--oneline", "--graph")

    print_title("2. Versions come from Git: no number is written by hand")
    schemactl(shop, "log", "orders")
    schemactl(shop, "check")

    print_title("3. What Git approved goes to the registry; each answer is predicted")
    schemactl(shop, "plan", "--target", "local", "--out", "../plan.json")
    schemactl(shop, "apply", "--target", "local", "../plan.json")
    schemactl(shop, "plan", "--target", "local")

    print_title("4. The package that reads every version, and 230,000 messages that old and new producers sent")
    package = folder / "shop_schemas.zip"
    run(shop, "git", "--no-pager", "show", "--stat=90", "--oneline", "HEAD", "--", "generated/shop_schemas/shop/sales")
    schemactl(shop, "generate", "--check")
    schemactl(shop, "generate", "--zip", str(package))
    raw = folder / "messages.parquet"
    sys.path.insert(0, str(package))
    generated = import_module(package.stem)
    began_s = time.monotonic()
    count = messages.write(raw, {topic: generated.topic(topic).codec for topic in messages.TOPICS})
    print(
        f"{count:,} messages in {raw.name}, every version among the writers, some damaged ({time.monotonic() - began_s:.0f} s)"
    )

    print_title("5. A Spark job reads them all; what cannot be decoded is rejected with its reason")
    ensure_java()
    run(folder, sys.executable, str(HERE / "pipeline.py"), str(raw), str(package), str(folder / "tables"))

    print_title("6. Somebody drops the enum symbol SHIPPED, and the default that would have covered it")
    edit(shop / ORDERS, GOOD, BREAKING)
    run(shop, "git", "--no-pager", "diff", "--unified=1")
    print(
        "The broker would accept this: it never compares enum symbols. Consumers would fail on every shipped order.\n"
    )
    schemactl(shop, "check", expect=100)

    print_title(
        "7. With the default back, old orders can be read; the package of the new version goes into the same pull request"
    )
    edit(shop / ORDERS, BREAKING, FIXED)
    schemactl(shop, "check")
    schemactl(shop, "generate")
    run(shop, "git", "--no-pager", "diff", "--unified=0", "--", "generated/*.py")

    print(
        f"\nDone in {time.monotonic() - started_s:.0f} s. Look around in {folder}: shop is the repository, tables the Parquet files."
    )


def print_title(text: str) -> None:
    """Print a heading."""
    print(f"\n{'=' * len(text)}\n{text}\n{'=' * len(text)}\n", flush=True)


def schemactl(folder: Path, *arguments: str, expect: int = 0) -> None:
    """Run `schemactl` in `folder`; stop unless it ends with the exit code `expect`."""
    run(folder, sys.executable, "-m", "schemactl", *arguments, shown_command="schemactl", expect=expect)


def run(folder: Path, *command: str, shown_command: str = "", expect: int = 0) -> None:
    """Run a command in `folder` and show what it prints; stop unless it ends with the exit code `expect`."""
    words = [shown_command, *command[3:]] if shown_command else [Path(command[0]).name, *command[1:]]
    print(f"$ {' '.join(words)}", flush=True)
    # The demo acts as a developer, also on a build server, where `check` would need a --base.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") and name != "CI"}
    done = subprocess.run(command, cwd=folder, env=environment, check=False)
    if done.returncode != expect:
        raise SystemExit(f"that ended with {done.returncode}, not {expect}")
    print(flush=True)


def edit(path: Path, old: str, new: str) -> None:
    """Replace `old`, which the file has once, by `new`."""
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{path} is not as it was expected")
    path.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo").absolute())
