"""Makes the repository with three environments, as `schemactl init --example environments` does.

FOLDER/shop is a clone of FOLDER/origin.git, whose branch `main` is approved; `tags` and `amounts` are two changes that wait there.
"""

from __future__ import annotations

from pathlib import Path

# A wheel has the examples in a package.
from ..shop import history
from ..shop.history import Step

STEPS = Path(__file__).parent / "history"

HISTORY = (
    Step("01-topics", "Declare orders and refunds, and three environments"),
    Step("02-tags", "Orders carry tags", branch="tags"),
    Step("03-amounts", "What is refunded is a text: no cent is lost", branch="amounts"),
)


def make(folder: Path, steps: Path = STEPS) -> Path:
    """Make a repository and a clone of it in `folder`, and return the clone; `steps` has the files."""
    shop = folder / "shop"
    history.make(shop, HISTORY, steps)
    history.git(folder, "clone", "--quiet", "--bare", "shop", "origin.git")
    history.git(shop, "remote", "add", "origin", "../origin.git")
    history.git(shop, "fetch", "--quiet")
    history.git(shop, "remote", "set-head", "origin", "main")
    return shop
