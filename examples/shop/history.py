"""Makes the shop's Git repository: `python -m examples.shop.history FOLDER`.

The files of every commit are in `examples/shop/history/<step>/`, and replace the existing files of the same name. Names, dates and
messages are fixed, so the commits have the same ids everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

STEPS = Path(__file__).parent / "history"


@dataclass(frozen=True, slots=True)
class Step:
    """One commit: the folder of its files ("" without files), the moved and removed paths, and the branch."""

    files: str
    subject: str
    moves: tuple[tuple[str, str], ...] = ()
    removes: tuple[str, ...] = ()
    branch: str = "main"
    merges: str = ""


HISTORY = (
    Step("01-first-topics", "Declare the topics of sales"),
    Step("02-operations", "Declare what the warehouse measures"),
    Step("03-web", "Declare the topics of the web shop"),
    Step("04-order-note", "Orders carry the customer's note"),
    Step("05-reformat", "Reformat the order: one attribute a line"),
    Step("06-order-tags", "Orders carry tags; quantities may be large"),
    Step("07-payment-docs", "Say what a payment is"),
    Step("08-referrer", "Page views say where the visitor came from"),
    Step("09-referrer-reverted", 'Revert "Page views say where the visitor came from"'),
    Step("10-money-tax", "Money says whether tax is included", branch="money-tax"),
    Step("11-click-element", "Clicks carry the path of elements", branch="main"),
    Step("", "Merge branch 'money-tax'", merges="money-tax"),
    Step("12-order-customer", "Call the customer a customer"),
    Step(
        "",
        "Give orders a folder of their own",
        moves=(
            ("namespaces/sales/orders.yaml", "namespaces/sales/orders/orders.yaml"),
            ("namespaces/sales/orders.avsc", "namespaces/sales/orders/orders.avsc"),
        ),
    ),
    Step("14-order-delivery", "Orders know where they go, whence they came, and that they may be cancelled"),
    Step("15-invoices", "Declare the invoices of the old billing service"),
    Step(
        "16-cart-coupon",
        "A cart may hold a coupon, coupons are no topic any more",
        removes=("namespaces/web/coupons.yaml",),
    ),
    Step("17-owners", "Say who answers for what"),
    Step("18-clients", "Declare who writes and reads orders and payments"),
    Step("18-package", "Keep the package that reads the topics beside them"),
)

FIRST_COMMIT_S = 1_767_258_000  # 2026-01-01 09:00 UTC
BETWEEN_COMMITS_S = 6 * 86_400 + 3_600


def make(folder: Path, history: Iterable[Step] = HISTORY, steps: Path = STEPS) -> None:
    """`folder` (made if need be, else empty) is a Git repository with the whole history; the files of its steps are in `steps`."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name a new folder")
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number, step in enumerate(history):
        when_s = FIRST_COMMIT_S + number * BETWEEN_COMMITS_S
        if step.branch != "main":
            git(folder, "checkout", "--quiet", "-b", step.branch)
        if step.merges:
            git(folder, "merge", "--quiet", "--no-ff", "-m", step.subject, step.merges, when_s=when_s)
            git(folder, "branch", "--quiet", "-d", step.merges)
            continue
        if step.files:
            shutil.copytree(steps / step.files, folder, dirs_exist_ok=True)
        for old, new in step.moves:
            (folder / new).parent.mkdir(parents=True, exist_ok=True)
            (folder / old).rename(folder / new)
            if new.endswith(".yaml"):
                _deepen_references(folder / new)
        for path in step.removes:
            (folder / path).unlink()
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", step.subject, when_s=when_s)
        if step.branch != "main":
            git(folder, "checkout", "--quiet", "main")


def _deepen_references(declaration: Path) -> None:
    """References are relative to the file that names them: one folder deeper, one step more."""
    text = declaration.read_text(encoding="utf-8")
    declaration.write_text(text.replace("[../", "[../../"), encoding="utf-8")


def git(folder: Path, *arguments: str, when_s: int = FIRST_COMMIT_S) -> None:
    """Git has run in `folder`, untouched by the user's own settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@shop.example",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@shop.example",
        "GIT_AUTHOR_DATE": f"{when_s} +0000",
        "GIT_COMMITTER_DATE": f"{when_s} +0000",
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m examples.shop.history FOLDER")
    make(Path(sys.argv[1]))
