"""Programs that tests run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PYTHON = Path(__file__).parents[2]


def start(folder: Path, program: str, *args: object) -> subprocess.Popen[str]:
    """Starts a Python program, given as text, with arguments. Warnings are errors."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    return subprocess.Popen(
        [sys.executable, "-W", "error", path, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PYTHON)},
    )


def finish(*children: subprocess.Popen[str]) -> list[str]:
    """What programs print; they have to end well."""
    out = []
    for p in children:
        text, error = p.communicate(timeout=120)
        assert p.returncode == 0, error
        out.append(text)
    return out
