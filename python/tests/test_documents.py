"""The examples in the documents run, one after another in each document, and print what is written there."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs").exists():
    pytest.skip("the documents are in the repository, not in the package", allow_module_level=True)
DATA = ROOT / "testdata" / "article-100x470"


@pytest.fixture(scope="session")
def folder(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With build/demo.wst as `make demo` writes it."""
    path = tmp_path_factory.mktemp("documents")
    (path / "build").mkdir()
    demo = path / "build" / "demo.wst"
    subprocess.run([cli, "convert", DATA, "-o", demo, "--ticker", "Name"], check=True, capture_output=True)
    return path


@pytest.mark.parametrize("name", ["python/README.md", "docs/orders.md"])
def test_examples(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text = (ROOT / name).read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    for block in blocks:
        line = text[: block.start(1)].count("\n")
        if ">>> " in block[1]:
            test = doctest.DocTestParser().get_doctest(block[1], {}, name, name, line)
            test.globs = names
            runner.run(test, out=said.append, clear_globs=False)
        else:
            exec(compile("\n" * line + block[1], name, "exec"), names)
    if said:
        pytest.fail("".join(said), pytrace=False)
