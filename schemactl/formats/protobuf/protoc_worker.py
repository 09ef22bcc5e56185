"""Run protoc over many folders, in a separate process so that crashes and output of protoc do no harm.

    python protoc_worker.py SITE INCLUDE < jobs

SITE is the folder with the package grpc_tools, INCLUDE the folder with protoc's own `.proto` files. Each line of standard input is
a folder, then options of protoc and names of files in FOLDER/in, with tabs between them: the files are compiled to FOLDER/out, protoc's
output goes to FOLDER/err, and a line with the exit code goes to standard output.
"""

from __future__ import annotations

import os
import sys


def main(site: str, include: str) -> None:
    """Run every job. If protoc kills the process, the job of the first missing line did it."""
    # grpc_tools is in SITE, which the isolated mode leaves out unless it is a site-packages folder.
    sys.path.insert(0, site)
    from grpc_tools._protoc_compiler import run_main

    for line in sys.stdin:
        folder, *job_arguments = line.rstrip("\n").split("\t")
        output = os.open(f"{folder}/err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 2)
        os.close(output)
        arguments = ["protoc", f"-I{folder}/in", f"-I{include}", f"--descriptor_set_out={folder}/out"]
        code = run_main([argument.encode() for argument in [*arguments, *job_arguments]])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
