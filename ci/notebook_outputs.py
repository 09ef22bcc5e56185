"""Run a notebook and store its outputs: `python ci/notebook_outputs.py examples/spark/orders.ipynb`; needs Java for Spark.

Standard output and results are stored; the log of Spark and times of the run are not.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from nbclient import NotebookClient

from schemactl.spark import ensure_java

nbformat: Final[Any] = import_module("nbformat")
"""Without types."""


def run_notebook(path: Path) -> Any:
    """Return the notebook with the outputs of a run in its folder."""
    ensure_java()
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    count = 0
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = join_streams([output for output in cell.outputs if output.get("name") != "stderr"])
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = count
    # The kernel of the run is not a part of the notebook.
    notebook.metadata = nbformat.from_dict({"language_info": {"name": "python"}})
    return notebook


def join_streams(outputs: list[Any]) -> list[Any]:
    """Return the outputs with adjacent texts of standard output as one, because their number depends on times."""
    joined: list[Any] = []
    for output in outputs:
        if joined and joined[-1].output_type == output.output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def main() -> None:
    """Write the outputs into the notebooks on the command line."""
    for name in sys.argv[1:]:
        nbformat.write(run_notebook(Path(name)), name)


if __name__ == "__main__":
    main()
