"""`schemactl demo` and `init --example`: what they write, and what they leave alone. tests/test_example.py runs the demo itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from command import schemactl

from schemactl.cli import init


def test_init_makes_the_example_s_repository(tmp_path: Path) -> None:
    done = schemactl(tmp_path, "init", "--example")
    assert "nineteen commits" in done.out
    assert "5 (in force)" in schemactl(tmp_path, "log", "orders").out
    assert "15 topics" in schemactl(tmp_path, "lint").out


def test_init_writes_no_example_where_files_are(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    assert "is not empty: nothing was written" in schemactl(tmp_path, "init", "--example", code=1).err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_demo_takes_no_folder_that_has_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    done = schemactl(tmp_path, "demo", ".", code=1)
    assert "has files that are none of the demo's: name a new folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert "is a file" in schemactl(tmp_path, "demo", "thesis.tex", code=64).err


def test_the_demo_names_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("schemactl.cli.init.find_spec", lambda name: None if name == "pyspark" else find_spec(name))
    done = schemactl(tmp_path, "demo", code=1)
    assert "the demo needs pyspark, which is not installed" in done.err
    assert 'pip install "pulsar-schemactl[spark,proto,java]"' in done.err


def test_an_error_inside_the_example_is_not_taken_for_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_module_not_found(name: str) -> None:
        raise ModuleNotFoundError(name=f"something.{name}")

    monkeypatch.setattr(init, "import_module", raise_module_not_found)
    with pytest.raises(ModuleNotFoundError):
        init._import_example("demo")
