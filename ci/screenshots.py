"""The README's screenshots: `python ci/screenshots.py docs/pictures`; needs Chromium and the package `markdown` of MkDocs.

They show the report of a pull request, a page of the catalog site and a topic in a notebook, all of the example shop.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hero_picture import ORDERS, decode_versions  # noqa: E402  in this folder

from examples.shop import history  # noqa: E402  the examples are not installed

markdown: Final[Any] = import_module("markdown")
"""Without types."""

WIDTH: Final = 1000

# The look of a comment on a host of Git, and of a notebook.
STYLE: Final = """
body { font: 14px/1.5 Inter, system-ui, sans-serif; color: #141822; background: #fff; margin: 24px; }
h1, h2, h3 { font-size: 16px; margin: 16px 0 8px; } code, pre { font: 12.5px "JetBrains Mono", "DejaVu Sans Mono", monospace; }
code { background: #eef0f4; border-radius: 4px; padding: 1px 4px; } pre { background: #f5f6f9; border-radius: 6px; padding: 10px 14px; overflow: hidden; }
pre code { background: none; padding: 0; } table { border-collapse: collapse; margin: 10px 0; } th, td { border: 1px solid #d5d9e0; padding: 4px 10px; text-align: left; }
.comment { border: 1px solid #d5d9e0; border-radius: 8px; } .comment > header { background: #f5f6f9; border-bottom: 1px solid #d5d9e0; border-radius: 8px 8px 0 0; padding: 8px 16px; }
.comment > div { padding: 4px 16px 12px; } a { color: #204ec3; } .cross { color: #c8102e; } .cell { border-left: 3px solid #204ec3; padding: 6px 12px; background: #f5f6f9; }
"""


def run_schemactl(folder: Path, *arguments: str) -> str:
    """Return the output of a command with any exit code."""
    command = [sys.executable, "-m", "schemactl", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout  # noqa: S603  the project's own command


def take_screenshot(page: Path, picture: Path, height: int) -> None:
    """Write the top of a page as a picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium is missing: make browser")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{height}"]
    subprocess.run([browser, *options, f"--screenshot={picture}", f"file://{page}"], check=True, capture_output=True)  # noqa: S603  the browser of this machine


def write_page(path: Path, body: str) -> Path:
    """Write a page with the style, and return its path."""
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8"><style>{STYLE}</style>{body}', "utf-8")
    return path


def main() -> None:
    """Write the pictures into the folder on the command line."""
    out = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = folder / "shop"
        history.make(shop)

        # A topic in a notebook, with a message of each version.
        rows = decode_versions(shop)
        from shop_schemas.shop.sales.orders import ORDERS as topic  # noqa: N811  generated in the shop

        cells = "".join(f"<tr>{''.join(f'<td>{value}</td>' for value in row[:4])}</tr>" for row in rows)
        table = (
            f"<table><tr><th>__schemaVersion</th><th>customer</th><th>status</th><th>channel</th></tr>{cells}</table>"
        )
        body = (
            f'<pre class="cell">ORDERS</pre>{topic._repr_html_()}<pre class="cell">ORDERS.decode(messages)</pre>{table}'
        )
        take_screenshot(write_page(folder / "notebook.html", body), out / "screenshot-notebook.png", 900)

        # The catalog site.
        run_schemactl(shop, "site", "--out", "site")
        page = next(path for path in (shop / "site").rglob("orders.html"))
        take_screenshot(page, out / "screenshot-site.png", 900)

        # The comment on a pull request that removes a symbol.
        text = (shop / ORDERS).read_text("utf-8").replace('"SHIPPED", ', "")
        (shop / ORDERS).write_text(text.replace('"CANCELLED"],\n        "default": "PLACED"', '"CANCELLED"]'), "utf-8")
        # As on GitHub, the contents of a fold are Markdown.
        report = run_schemactl(shop, "check", "--format", "markdown").replace("<details", '<details markdown="1"')
        comment = markdown.markdown(report, extensions=["tables", "fenced_code", "md_in_html"])
        # Not every machine has a font of emoji.
        comment = comment.replace("❌", '<span class="cross">✗</span>')
        body = f'<div class="comment"><header><b>schemactl</b> commented</header><div>{comment}</div></div>'
        take_screenshot(write_page(folder / "comment.html", body), out / "screenshot-pull-request.png", 900)


if __name__ == "__main__":
    main()
