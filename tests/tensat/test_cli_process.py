"""The command line as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_program_ends_with_the_status() -> None:
    """As a process of its own: help is 0, a bad argument 2, a bad model 3."""
    for arguments, status in (
        (["--help"], 0),
        (["optimize"], 2),
        (["optimize", "a", "b"], 3),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "tensat", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert b"Traceback" not in done.stderr
