"""The Python API: its page runs, it loads nothing before it is used, and it has the names that the page promises."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import shop

import schemactl

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "python-api.md"


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop.git(folder, "init", "-q", "-b", "main")
    (folder / "namespaces").mkdir()
    (folder / "schemactl.yaml").write_text(
        'version: 1\ntargets: {local: {registry: "sqlite:.schemactl/registry.db"}}\n'
    )
    (folder / "namespaces/shop.yaml").write_text(
        "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n---\n"
        "topic: shop/sales/orders\nschema: {type: AVRO, definition: orders.avsc}\n"
    )
    definition = folder / "namespaces/orders.avsc"
    definition.write_text('{"type": "record", "name": "Order", "fields": []}')
    shop.git(folder, "add", ".")
    shop.git(folder, "commit", "-q", "-m", "Declare orders")
    definition.write_text('{"type": "record", "name": "Order", "fields": [{"name": "channel", "type": "string"}]}')
    result = doctest.testfile(str(PAGE), module_relative=False, globs={"shop": str(folder)})
    assert result.failed == 0
    assert result.attempted > 20


def test_every_name_can_be_had_and_an_unknown_one_is_an_attribute_error() -> None:
    assert all(getattr(schemactl, name) is not None for name in schemactl.__all__)
    assert set(schemactl.__all__) <= set(dir(schemactl))
    assert not hasattr(schemactl, "nonsense")


def test_the_package_imports_nothing_until_it_is_used_and_check_stays_the_function() -> None:
    program = (
        "import sys, schemactl\n"
        "print(sorted(name for name in sys.modules if name.startswith('schemactl')))\n"
        "import schemactl.checks.check\n"
        "from schemactl.checks.check_report import CheckReport\n"
        "print(schemactl.check.__name__, schemactl.check.__module__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['schemactl']", "check schemactl.api"]
