"""A script that runs protoc over many folders, in a process of its own so that crashes and output of protoc do no harm.

    python protoc_worker.py SITE INCLUDE < jobs

SITE is the folder that holds the package grpc_tools, INCLUDE protoc's own `.proto` files. Each line of standard input
is a folder and an entry, tab between them: FOLDER/in/ENTRY is compiled to FOLDER/out, protoc's words go to FOLDER/err,
and a line with its exit code to standard output.
"""

from __future__ import annotations

import os
import sys


def main(site: str, include: str) -> None:
    """Do every job. If protoc kills the process, the first line that is missing tells at which job."""
    # What is imported next lies in SITE, which the isolated mode leaves out where it is not a site-packages.
    sys.path.insert(0, site)
    from grpc_tools._protoc_compiler import run_main

    for line in sys.stdin:
        folder, _, entry = line.rstrip("\n").partition("\t")
        words = os.open(f"{folder}/err", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(words, 2)
        os.close(words)
        arguments = [
            "protoc",
            f"-I{folder}/in",
            f"-I{include}",
            "--include_imports",
            "--include_source_info",
            f"--descriptor_set_out={folder}/out",
            entry,
        ]
        code = run_main([argument.encode() for argument in arguments])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
