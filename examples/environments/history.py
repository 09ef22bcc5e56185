"""Makes the repository with three environments: `python -m examples.environments.history FOLDER`.

FOLDER/shop is a clone of FOLDER/origin.git, whose branch `main` is approved; `tags` and `amounts` are two changes that wait there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from examples.shop import history
from examples.shop.history import Step

STEPS = Path(__file__).parent / "history"

HISTORY = (
    Step("01-topics", "Declare orders and refunds, and three environments"),
    Step("02-tags", "Orders carry tags", branch="tags"),
    Step("03-amounts", "What is refunded is a text: no cent is lost", branch="amounts"),
)


def make(folder: Path, steps: Path = STEPS) -> Path:
    """There is the repository, and the one that it is a clone of, in `folder`; return the clone. `steps` has the files."""
    shop = folder / "shop"
    history.make(shop, HISTORY, steps)
    history.git(folder, "clone", "--quiet", "--bare", "shop", "origin.git")
    history.git(shop, "remote", "add", "origin", "../origin.git")
    history.git(shop, "fetch", "--quiet")
    history.git(shop, "remote", "set-head", "origin", "main")
    return shop


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m examples.environments.history FOLDER")
    make(Path(sys.argv[1]))
