"""The distribution's name: every file that requests it requests ours, and not another project's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

_OTHER = r"(?<![-\w./])schemactl(?![-\w./])"
FOREIGN = re.compile(
    # an installer that is told to fetch it: pip, pipx, uv, Spark's notebooks
    rf"\b(?:pip3?|pipx|uv tool|uv)\s+(?:install|add|run|inject)\b[^\n#;&|`)]*{_OTHER}"
    # with extras or a version: a requirement
    rf"|(?<![-\w./])schemactl\[|{_OTHER}\s*[=~!<>]=\s*v?\d"
    # looked up among what is installed
    rf"|\b(?:version|metadata|distribution|requires|installed|files)\(\s*['\"]schemactl['\"]"
    # in the list of a manifest, or as the name of a project
    rf"|^\s*name\s*=\s*['\"]schemactl['\"]|additional_dependencies.*{_OTHER}"
    rf"|\bRequires-Dist:\s*{_OTHER}",
    re.MULTILINE,
)


def read_tracked_files() -> dict[str, str]:
    """The text of every file that Git has here, but this one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    texts = {}
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and path != Path(__file__):
            texts[name] = path.read_bytes().decode("utf-8", "replace")
    return texts


def test_no_file_asks_for_somebody_else_s_distribution() -> None:
    files = read_tracked_files()
    assert {"README.md", "pyproject.toml", "schemactl/cli/topic_selection.py"} <= set(files)
    wrong = [
        f"{name}:{text.count(chr(10), 0, texts.start()) + 1}: {texts[0]}"
        for name, text in files.items()
        for texts in FOREIGN.finditer(text)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "line",
    [
        "    pip install schemactl",
        'pip install "schemactl[spark]"',
        "pipx install schemactl",
        "%pip install numpy schemactl",
        "needs schemactl[serve]; prints",
        "schemactl==0.1.0",
        "'schemactl >= 1'",
        'metadata.version("schemactl")',
        'metadata.requires("schemactl")',
        'name = "schemactl"',
        "additional_dependencies: [schemactl, protobuf]",
    ],
)
def test_what_asks_for_it_is_seen(line: str) -> None:
    assert FOREIGN.search(line)


@pytest.mark.parametrize(
    "line",
    [
        'pip install "pulsar-schemactl[spark]"',
        "pip install pulsar-schemactl            # or, from this checkout: pip install .",
        "python -m schemactl check",
        'f"{info}/WHEEL": "schemactl check --staged"',
        'entry = "schemactl.__main__:main"',
        "pip install -e /src/schemactl",
    ],
)
def test_what_does_not_is_not(line: str) -> None:
    assert not FOREIGN.search(line)


def test_the_version_says_where_the_other_is_installed_too(tmp_path: Path) -> None:
    other = tmp_path / "schemactl-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: schemactl\nVersion: 2.0\n")
    program = f"import sys; sys.path.append({str(tmp_path)!r}); sys.argv[1:] = ['--version']\n"
    program += "from schemactl.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("schemactl ")
    assert "pip uninstall schemactl pulsar-schemactl && pip install pulsar-schemactl" in done.stderr
